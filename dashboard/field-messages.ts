import type { ApiFailure } from './api/client.ts'

/**
 * Returns the API's errors about a field and what is in it, as sentences: `config.sshIPWhitelist[2]` is line 3 of the field
 * `config.sshIPWhitelist`. An error that is the message of the whole failure is a sentence of its own.
 */
export function messagesOf(
  failure: (Pick<ApiFailure, 'details'> & Partial<Pick<ApiFailure, 'message'>>) | undefined,
  field: string,
): readonly string[] {
  return (failure?.details ?? []).flatMap((error) => {
    if (error.field === field) return [error.message === failure?.message ? sentence(error.message) : `This ${error.message}.`]
    const item = error.field.startsWith(`${field}[`) ? /^\[(\d+)\](.*)$/.exec(error.field.slice(field.length)) : null
    if (!item) return []
    const [, index = '0', rest = ''] = item
    return [`Line ${Number(index) + 1}${rest === '' ? '' : `, ${rest.slice(1)},`} ${error.message}.`]
  })
}

const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`

/** Returns the errors that no field of the form shows. */
export function otherMessages(
  failure: Pick<ApiFailure, 'details' | 'message'> | undefined,
  fields: readonly string[],
): string | undefined {
  if (!failure) return undefined
  const isShown = ({ field }: { field: string }) => fields.some((name) => field === name || field.startsWith(`${name}[`))
  const rest = failure.details.filter((detail) => !isShown(detail))
  if (failure.details.length > 0 && rest.length === 0) return undefined
  return rest.length > 0 ? rest.map(({ field, message }) => `${field} ${message}`).join('; ') : failure.message
}

/** Returns the lines of a text area that hold something. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
