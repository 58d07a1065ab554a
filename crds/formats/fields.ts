/** JSON object. */
export type Fields = Readonly<Record<string, unknown>>

/** Whether a value is a JSON object: neither null nor a list. */
export const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)
