import { AVATAR_SIDE_MAX } from '@latchkey/contract/avatar';
import { useMutation } from '@tanstack/react-query';
import { type PointerEvent, Suspense, use, useEffect, useId, useMemo, useRef, useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Form } from '../../components/form.tsx';
import { Notice } from '../../components/notice.tsx';
import { Skeleton } from '../../components/states.tsx';
import { toast } from '../../toast/toasts.ts';
import styles from './account.module.css';

/** The service stores avatars of this size. */
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
  /** The image that was chosen; undefined while the dialog is closed. */
  readonly file: File | undefined;
  readonly onClose: () => void;
}

export function AvatarDialog({ file, onClose }: AvatarDialogProps) {
  // null: the browser cannot decode it.
  const decoding = useMemo(() => file && createImageBitmap(file).catch(() => null), [file]);
  return (
    <Dialog open={file !== undefined} onClose={onClose} stays title="Crop the avatar" description="Drag it, or use the sliders.">
      <Suspense fallback={<Skeleton />}>{decoding && <Cropper decoding={decoding} onClose={onClose} />}</Suspense>
    </Dialog>
  );
}

function Cropper({ decoding, onClose }: { readonly decoding: Promise<ImageBitmap | null>; readonly onClose: () => void }) {
  const image = use(decoding);
  if (image) return <CropForm image={image} onClose={onClose} />;
  return (
    <div className={`${styles.crop} stack`}>
      <Notice kind="danger" title="This file is not a readable image">
        Choose a PNG, JPEG or WebP image.
      </Notice>
      <div className="cluster">
        <Button onClick={onClose}>Close</Button>
      </div>
    </div>
  );
}

function CropForm({ image, onClose }: { readonly image: ImageBitmap; readonly onClose: () => void }) {
  const [crop, setCrop] = useState(CENTERED);
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => draw(canvas.current, image, crop), [image, crop]);
  const upload = useMutation({
    mutationFn: async (_values: FormData) => latchkey.avatar.upload(await toBlob(canvas.current)),
    onSuccess: () => {
      toast.success('Avatar changed');
      onClose();
    },
  });
  const drag = (event: PointerEvent) => {
    if (event.buttons === 1) setCrop((now) => move(now, image, event));
  };
  return (
    <Form submission={upload} action="Save avatar" onCancel={onClose}>
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
