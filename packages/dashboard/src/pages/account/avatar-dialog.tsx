import { AVATAR_SIDE_MAX } from '@latchkey/contract/avatar';
import { type PointerEvent, useEffect, useId, useRef, useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Form } from '../../components/form.tsx';
import { Notice } from '../../components/notice.tsx';
import { toast } from '../../toast/toasts.ts';
import styles from './account.module.css';

const ZOOM_MAX = 4;

/** The square of an image: how much it is enlarged, and where it is, from -1 to 1. */
interface Crop {
  readonly zoom: number;
  readonly x: number;
  readonly y: number;
}

const CENTERED: Crop = { zoom: 1, x: 0, y: 0 };

const SLIDERS = [
  ['zoom', 'Zoom', 1, ZOOM_MAX],
  ['x', 'Left and right', -1, 1],
  ['y', 'Up and down', -1, 1],
] as const;

interface AvatarDialogProps {
  /** Null if the browser cannot decode it, undefined while the dialog is closed. */
  readonly image: ImageBitmap | null | undefined;
  readonly onClose: () => void;
}

export function AvatarDialog({ image, onClose }: AvatarDialogProps) {
  return (
    <Dialog open={image !== undefined} onClose={onClose} stays title="Crop the avatar" description="Drag it, or use the sliders.">
      {image && <CropForm image={image} onClose={onClose} />}
      {image === null && (
        <div className={`${styles.crop} stack`}>
          <Notice kind="danger" title="This file is not a readable image">
            Choose a PNG, JPEG or WebP image.
          </Notice>
          <Button onClick={onClose}>Close</Button>
        </div>
      )}
    </Dialog>
  );
}

function CropForm({ image, onClose }: { readonly image: ImageBitmap; readonly onClose: () => void }) {
  const [crop, setCrop] = useState(CENTERED);
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => draw(canvas.current, image, crop), [image, crop]);
  const upload = async () => latchkey.avatar.upload(await toBlob(canvas.current));
  const finish = () => {
    toast.success('Avatar changed');
    onClose();
  };
  const drag = (event: PointerEvent) => {
    if (event.buttons === 1) setCrop((now) => move(now, image, event));
  };
  return (
    <Form onSubmit={upload} onDone={finish} action="Save avatar" onCancel={onClose}>
      <div className={`${styles.crop} stack`}>
        <canvas
          ref={canvas}
          className={styles.canvas}
          width={AVATAR_SIDE_MAX}
          height={AVATAR_SIDE_MAX}
          role="img"
          aria-label="The avatar as it will be"
          onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
          onPointerMove={drag}
        />
        <Sliders crop={crop} onChange={setCrop} />
      </div>
    </Form>
  );
}

function Sliders({ crop, onChange }: { readonly crop: Crop; readonly onChange: (crop: Crop) => void }) {
  const id = useId();
  return (
    <div className={styles.sliders}>
      {SLIDERS.flatMap(([name, label, min, max]) => [
        <label key={`${name}-label`} htmlFor={id + name}>
          {label}
        </label>,
        <input
          key={name}
          id={id + name}
          type="range"
          min={min}
          max={max}
          step={0.02}
          value={crop[name]}
          onChange={(event) => onChange({ ...crop, [name]: Number(event.currentTarget.value) })}
        />,
      ])}
    </div>
  );
}

/** The side of the square in pixels of the image, and how far it can move from its edge. */
function measure({ width, height }: ImageBitmap, zoom: number) {
  const side = Math.min(width, height) / zoom;
  return { side, roomX: width - side, roomY: height - side };
}

const limit = (value: number) => Math.max(-1, Math.min(1, value));

function move(crop: Crop, image: ImageBitmap, { movementX, movementY }: PointerEvent): Crop {
  const { side, roomX, roomY } = measure(image, crop.zoom);
  const perPixel = (2 * side) / AVATAR_SIDE_MAX;
  return {
    ...crop,
    x: roomX > 0 ? limit(crop.x - (movementX * perPixel) / roomX) : 0,
    y: roomY > 0 ? limit(crop.y - (movementY * perPixel) / roomY) : 0,
  };
}

function draw(canvas: HTMLCanvasElement | null, image: ImageBitmap, { zoom, x, y }: Crop): void {
  const context = canvas?.getContext('2d');
  if (!context) return;
  const { side, roomX, roomY } = measure(image, zoom);
  context.clearRect(0, 0, AVATAR_SIDE_MAX, AVATAR_SIDE_MAX);
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, (roomX * (x + 1)) / 2, (roomY * (y + 1)) / 2, side, side, 0, 0, AVATAR_SIDE_MAX, AVATAR_SIDE_MAX);
}

function toBlob(canvas: HTMLCanvasElement | null): Promise<Blob> {
  return new Promise((resolve, reject) => {
    const take = (blob: Blob | null) => (blob ? resolve(blob) : reject(new TypeError('the canvas has no image')));
    canvas?.toBlob(take, 'image/png');
  });
}
