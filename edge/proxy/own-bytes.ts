import { Buffer } from 'node:buffer'

/** A text, latin1, as bytes in memory of their own: what is kept for long must not keep a shared buffer. */
export function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(text.length)
  bytes.write(text, 0, 'latin1')
  return bytes
}
