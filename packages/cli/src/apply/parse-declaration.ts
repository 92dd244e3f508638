import { Lexer, LineCounter, Parser, parseDocument } from 'yaml';
import type { z } from 'zod';
import { type Declaration, declaration } from './declaration.ts';
import { DeclarationError } from './state.ts';

/** Problems shown of one document; the others follow from them, or wait. */
const PROBLEMS_MAX = 10;
/** Levels of nesting. A declaration needs seven. */
const DEPTH_MAX = 20;

/**
 * Parses the YAML of a declaration.
 *
 * @param source the name of the document, for errors
 * @throws {DeclarationError} naming line, path and rule of each problem
 */
export function parseDeclaration(text: string, source: string): Declaration {
  if (text.includes('\0')) throw new DeclarationError(`${source}: this is not a text.`);
  rejectDeepNesting(text, source);
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const at = (offset: number) => `${source}:${lineCounter.linePos(offset).line}`;
  // Syntax errors come with a second part, an excerpt of the document.
  if (document.errors.length > 0)
    throw toError(document.errors, ({ pos, message }) => `${at(pos[0])}: ${message.split('\n')[0]}`);
  const parsed = declaration.safeParse(toValue(document, source), { error: describeIssue });
  if (parsed.success) return parsed.data;
  throw toError(parsed.error.issues, (issue) => {
    const { path, message } = issue;
    // An unknown key is in no path.
    const [key] = issue.code === 'unrecognized_keys' ? issue.keys : [];
    const name = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
    const offset = offsetOf(document, key === undefined ? path : [...path, key]);
    return `${at(offset)}: ${name.replace(/^\./, '') || 'the document'}: ${message}`;
  });
}

/** Types of values in words of YAML. */
const TYPES: Readonly<Record<string, string>> = {
  string: 'text: put it in quotes',
  array: 'a list',
  object: 'a map',
  record: 'a map',
  boolean: 'true or false',
  int: 'a whole number',
  number: 'a whole number',
};

/** Rules that a schema leaves to the library, whose messages are for programmers. */
function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'unrecognized_keys') return `unknown key: ${issue.keys.join(', ')}`;
  if (issue.code === 'invalid_value') return `must be ${issue.values.join(' or ')}`;
  if (issue.code !== 'invalid_type') return undefined;
  return issue.input === undefined ? 'is missing' : `must be ${TYPES[issue.expected] ?? issue.expected}`;
}

/** The composer of the library calls itself for each level, without a limit. */
function rejectDeepNesting(text: string, source: string): void {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    // The stack is that of the nodes around this lexeme.
    Array.from(parser.next(lexeme));
    if (parser.stack.length <= DEPTH_MAX) continue;
    const { length: line } = text.slice(0, parser.offset).split('\n');
    throw new DeclarationError(`${source}:${line}: nested more than ${DEPTH_MAX} levels deep`);
  }
}

/** Fails where aliases expand to too much. */
function toValue(document: ReturnType<typeof parseDocument>, source: string): unknown {
  try {
    return document.toJS();
  } catch (err) {
    throw new DeclarationError(`${source}: ${(err as Error).message}`);
  }
}

function toError<T>(problems: readonly T[], describe: (problem: T) => string): DeclarationError {
  const left = problems.length - PROBLEMS_MAX;
  const lines = problems.slice(0, PROBLEMS_MAX).map(describe);
  return new DeclarationError([...lines, ...(left > 0 ? [`… and ${left} more problems.`] : [])].join('\n'));
}

/** Offset of the deepest part of a path that exists: an absent property has none. */
function offsetOf(document: ReturnType<typeof parseDocument>, path: readonly PropertyKey[]): number {
  for (let length = path.length; length > 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true) as { readonly range?: readonly number[] } | undefined;
    if (node?.range?.[0] !== undefined) return node.range[0];
  }
  return document.contents?.range?.[0] ?? 0;
}
