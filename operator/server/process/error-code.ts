/** The `code` of a system or driver error (`ENOENT`, `57P03`), if it has one. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

export function hasCode(error: unknown, code: string): boolean {
  return codeOf(error) === code
}
