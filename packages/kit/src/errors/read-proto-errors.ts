import { type DescEnum, type DescMessage, type DescMethod, getOption } from '@bufbuild/protobuf';
import * as options from '@latchkey/proto/latchkey/rpc/v1/error_pb';
import { type Catalogue, defineErrors, ERROR_KINDS, type ErrorDefinition, type ErrorKind, MALFORMED_MESSAGE } from './errors.ts';

/** Names of the errors of a generated enum, as reasons. */
type ReasonOf<Values> = Lowercase<Exclude<keyof Values & string, 'UNSPECIFIED'>>;

/**
 * The errors of enums of the protocol, one function per reason.
 *
 * @example const errors = createErrors<typeof AccountError>(AccountErrorSchema);
 * @throws Error for a value without the option `latchkey.rpc.v1.error`
 */
export function createErrors<Values>(...enums: readonly DescEnum[]): Catalogue<Record<ReasonOf<Values>, unknown>> {
  const definitions = Object.fromEntries(enums.flatMap((one) => [...readDefinitions(one)]));
  return defineErrors(definitions) as Catalogue<Record<ReasonOf<Values>, unknown>>;
}

/** The definitions of an enum of errors by reason. Throws Error for an unknown kind. */
export function readDefinitions(errorEnum: DescEnum): Map<string, ErrorDefinition> {
  const errors = errorEnum.values.filter(({ number }) => number !== 0);
  return new Map(
    errors.map((value) => {
      const { kind, code, message, path, rule } = getOption(value, options.error);
      if (!Object.hasOwn(ERROR_KINDS, kind)) throw new Error(`${value.name} has no known kind`);
      const texts = Object.entries({ code, path, rule }).filter(([, text]) => text !== '');
      const definition = { kind: kind as ErrorKind, message: message || MALFORMED_MESSAGE, ...Object.fromEntries(texts) };
      return [value.localName.toLowerCase(), definition];
    }),
  );
}

/**
 * The reasons that a method fails with, or the HTTP request whose response a message is.
 *
 * @param enums errors of the package, which has those of the use cases
 * @throws Error for a use case without errors
 */
export function reasonsOf(failing: DescMethod | DescMessage, enums: readonly DescEnum[]): readonly string[] {
  const declared = failing.kind === 'rpc' ? getOption(failing, options.fails_with) : getOption(failing, options.body_fails_with);
  const values = enums.flatMap((one) => one.values);
  const shared = declared.useCases.flatMap((useCase) => {
    const failures = values.filter((value) => getOption(value, options.error).useCases.includes(useCase));
    if (failures.length === 0) throw new Error(`${failing.name} runs ${useCase}, which has no errors`);
    return failures.map(({ localName }) => localName.toLowerCase());
  });
  return [...declared.reasons, ...shared];
}
