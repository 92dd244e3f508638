import type { Release } from '@latchkey/client';
import type { DeclaredApplication, SettingName } from './declaration.ts';

/** A declaration that is wrong, or does not fit the server or the files: one problem a line. */
export class DeclarationError extends Error {}

export type Settings = Readonly<Record<SettingName, string | boolean>>;

export interface StoredFile {
  readonly id: string;
  readonly name: string;
  readonly sha256: string;
}

export interface CurrentApplication {
  readonly id: string;
  readonly name: string;
  readonly settings: Settings;
  readonly levels: readonly string[];
  readonly files: readonly StoredFile[];
  /** Read only for applications whose channels are declared. */
  readonly releases?: readonly Release[];
}

/** A declared file. Without a path, the server has to have it already. */
export interface WantedFile {
  readonly name: string;
  readonly sha256: string;
  readonly source?: { readonly path: string; readonly declaredPath: string; readonly byteSize: number };
}

/** A declared application whose files have been read. What is absent stays as it is. */
export interface WantedApplication extends Omit<DeclaredApplication, 'files'> {
  readonly files?: readonly WantedFile[];
}
