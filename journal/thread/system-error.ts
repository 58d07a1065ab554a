/** An error of the operating system (Node.js, "Class: SystemError"): of the disk rather than of what was to be written. */
export function isSystemError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string'
}
