/**
 * Whether an error comes from the operating system (Node.js, "Class: SystemError"): a fault of the disk rather than of the data.
 */
export function isSystemError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string'
}
