import { type DragEvent, useRef, useState } from 'react';

const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer.types.includes('Files');

/** Properties of an element that files can be dropped on, and whether some are held over it. */
export function useDropTarget(onDrop: (files: readonly File[], folders: number) => void) {
  const [isOver, setOver] = useState(false);
  // Entering a child comes before leaving the parent.
  const depth = useRef(0);
  const enter = (change: number) => {
    depth.current += change;
    setOver(depth.current > 0);
  };
  const handlers = {
    onDragEnter: (event: DragEvent) => hasFiles(event) && enter(1),
    onDragLeave: (event: DragEvent) => hasFiles(event) && enter(-1),
    onDragOver: (event: DragEvent) => hasFiles(event) && event.preventDefault(),
    onDrop: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth.current = 0;
      setOver(false);
      const items = [...event.dataTransfer.items].filter(({ kind }) => kind === 'file');
      const isFolder = (item: DataTransferItem) => item.webkitGetAsEntry?.()?.isDirectory === true;
      const files = items.filter((item) => !isFolder(item)).map((item) => item.getAsFile());
      onDrop(
        files.filter((file) => file !== null),
        items.length - files.length,
      );
    },
  };
  return { isOver, handlers };
}
