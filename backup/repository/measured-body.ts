import { createHash } from 'node:crypto'
import type { Stored } from './port.ts'

/** Body of an object on its way into a repository. */
export interface MeasuredBody {
  /** The bytes, for one reader. */
  readonly chunks: AsyncIterable<Uint8Array>
  /** Whether a reader has begun: a second one would get the rest alone. */
  isStarted(): boolean
  /** Size and SHA-256 of what was read. */
  stored(): Stored
  /** Throws the body's own error, or the reason of the abort, if one of these ended the body. */
  throwFailure(): void
}

/** Measures a body while it is read, once. Its own failures stay apart from those of the repository. */
export function measured(body: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): MeasuredBody {
  const hash = createHash('sha256')
  let sizeBytes = 0
  let started = false
  let failure: { readonly error: unknown } | undefined

  async function* read(): AsyncGenerator<Uint8Array> {
    started = true
    let isReading = true
    try {
      signal?.throwIfAborted()
      for await (const chunk of body) {
        signal?.throwIfAborted()
        hash.update(chunk)
        sizeBytes += chunk.byteLength
        isReading = false
        yield chunk
        isReading = true
      }
    } catch (error) {
      // Otherwise it is an error of the reader, which a stream throws into its source.
      if (isReading) failure = { error }
      throw error
    }
  }

  return {
    chunks: read(),
    isStarted: () => started,
    stored: () => ({ sizeBytes, sha256: hash.copy().digest('hex') }),
    throwFailure() {
      signal?.throwIfAborted()
      if (failure) throw failure.error
    },
  }
}
