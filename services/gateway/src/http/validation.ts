import type { ErrorDetail } from '@latchkey/kit/errors/errors';
import { DETAILS_MAX } from '@latchkey/kit/http/response';
import { formatCount } from '@latchkey/kit/validation/text';
import type { FastifyRequest, FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { errors } from '../errors.ts';

const PARTS: Readonly<Record<string, string>> = { body: 'body', querystring: 'query', params: 'params', headers: 'header' };

/** Compiles the validator of a part of a request. Its error has the rule for each input. */
export const compileValidator: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart = 'body' }) => {
  const part = PARTS[httpPart] ?? httpPart;
  const error = (issue: z.core.$ZodRawIssue) => ruleOf(issue, part);
  return (data: unknown) => {
    const parsed = schema.safeParse(data, { error });
    if (parsed.success) return { value: parsed.data };
    const details = parsed.error.issues.slice(0, DETAILS_MAX).map(({ path, message }) => ({
      path: [part, ...path].join('.'),
      message,
    }));
    return { error: errors.request_invalid().withDetails(...details) };
  };
};

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'a boolean',
  array: 'an array',
  object: 'a JSON object',
};

const FORMATS: Readonly<Record<string, string>> = {
  email: 'an email address',
  datetime: 'an ISO 8601 date and time with a time zone',
};

/** The broken rule, for schemas without a message. It never repeats the input. */
function ruleOf(issue: z.core.$ZodRawIssue, part: string): string {
  if (issue.input === undefined) return 'is required';
  if (part === 'query' && Array.isArray(issue.input)) return 'must be given once';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TYPES[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${listAlternatives(issue.values)}`;
    case 'invalid_format':
      return `must be ${FORMATS[issue.format] ?? issue.format}`;
    case 'too_small':
      return issue.minimum === 1 ? 'must not be empty' : `must be at least ${issue.minimum} entries`;
    case 'too_big':
      return `must be at most ${formatCount(issue.maximum)} entries`;
    case 'unrecognized_keys':
      return `has an unknown property; known are ${knownProperties(issue.inst)}`;
    case 'invalid_union':
      return ruleOfUnion(issue);
    default:
      return 'is not valid';
  }
}

function ruleOfUnion({ discriminator, options, input, errors: branches }: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidUnion>) {
  if (discriminator === undefined)
    return `must be ${listAlternatives(branches.map(([first]) => first?.message.replace(/^must be /, '')))}`;
  return Object.hasOwn(Object(input), discriminator)
    ? `must be ${listAlternatives(options as readonly unknown[])}`
    : 'is required';
}

function listAlternatives(values: readonly unknown[]): string {
  const texts = values.map(String);
  return texts.length > 1 ? `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}` : texts.join('');
}

function knownProperties(schema: z.core.$ZodRawIssue['inst']): string {
  return Object.keys((schema as z.ZodObject).shape).join(', ');
}

const LOCATED = /^(?:request|body|query|params|header)(?:\.|$)/;

/** Adds the part of the request to the input that a service names in a detail. */
export function locateDetail({ path, message }: ErrorDetail, request: FastifyRequest): ErrorDetail {
  if (LOCATED.test(path)) return { path, message };
  const part = (['params', 'query'] as const).find((name) => Object.hasOwn(Object(request[name]), path));
  return { path: `${part ?? (request.method === 'GET' ? 'query' : 'body')}.${path}`, message };
}
