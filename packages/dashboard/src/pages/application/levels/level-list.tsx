import { type KeyboardEvent, type PointerEvent, useRef, useState } from 'react';
import { IconButton } from '../../../components/button.tsx';
import { TextField } from '../../../components/form.tsx';
import { classes } from '../../../styles/classes.ts';
import type { Level } from './draft.ts';
import styles from './level-list.module.css';

interface LevelListProps {
  readonly levels: readonly Level[];
  /** Of each level, if it has one. */
  readonly problems: ReadonlyArray<string | undefined>;
  /** The level that was just added. */
  readonly focused: number | undefined;
  readonly onChange: (levels: readonly Level[]) => void;
}

/** Levels to rename, to move by pointer and by keyboard, and to delete. */
export function LevelList({ levels, problems, focused, onChange }: LevelListProps) {
  const list = useRef<HTMLOListElement>(null);
  const [dragged, setDragged] = useState<number>();
  const [announcement, setAnnouncement] = useState('');
  const move = (from: number, to: number) => {
    const level = levels[from];
    if (!level || from === to || to < 0 || to >= levels.length) return;
    onChange(levels.toSpliced(from, 1).toSpliced(to, 0, level));
    setAnnouncement(`${level.name || 'New level'}: position ${to + 1} of ${levels.length}`);
  };
  const onPointerMove = (index: number, event: PointerEvent) => {
    if (dragged === levels[index]?.key) move(index, indexAt(list.current, event.clientY));
  };
  const onKeyDown = (index: number, event: KeyboardEvent) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    move(index, index + step);
  };
  return (
    <>
      <ol ref={list} className="stack close">
        {levels.map(({ key, name }, index) => (
          <li key={key} className={classes(styles.item, dragged === key && styles.dragged)}>
            <span
              className={styles.handle}
              onPointerDown={(event) => {
                event.currentTarget.setPointerCapture(event.pointerId);
                setDragged(key);
              }}
              onPointerMove={(event) => onPointerMove(index, event)}
              onPointerUp={() => setDragged(undefined)}
              onPointerCancel={() => setDragged(undefined)}
            >
              <IconButton
                small
                icon="grip"
                label={`Move ${name || 'new level'}: arrow keys`}
                onKeyDown={(event) => onKeyDown(index, event)}
              />
            </span>
            <span className={classes(styles.position, 'muted')} aria-hidden="true">
              {index + 1}
            </span>
            <TextField
              name={`level-${key}`}
              label={`Level ${index + 1}`}
              hideLabel
              dir="auto"
              value={name}
              // An empty input is not an error yet.
              error={name === '' && key === focused ? undefined : problems[index]}
              autoFocus={key === focused}
              onChange={(event) => onChange(levels.with(index, { key, name: event.currentTarget.value }))}
            />
            <IconButton
              small
              icon="trash"
              label={`Delete ${name || 'new level'}`}
              onClick={() => onChange(levels.toSpliced(index, 1))}
            />
          </li>
        ))}
      </ol>
      <p className="visually-hidden" role="status">
        {announcement}
      </p>
    </>
  );
}

/** Index of the item at this height of the window; the first or the last beyond the list. */
function indexAt(list: HTMLOListElement | null, y: number): number {
  const items = [...(list?.children ?? [])];
  const below = items.findIndex((item) => y < item.getBoundingClientRect().bottom);
  return below === -1 ? items.length - 1 : below;
}
