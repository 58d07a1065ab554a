import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new directory, on the disk that holds the system's temporary files, which is removed at the end. */
export async function temporaryDirectory(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'mooring-bench-'))
  return {
    path,
    // Retried: a database server that was killed may be writing for a moment yet.
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  }
}
