const UNPRINTABLE = /[^\x20-\x7e]/

/**
 * Returns latin1 text with each byte that is not printable ASCII as `%` and two hexadecimal digits (RFC 3986, section 2.1), so that it can
 * be shown anywhere: a terminal would execute control characters.
 */
export function percentEncoded(text: string): string {
  if (!UNPRINTABLE.test(text)) return text
  return text.replace(/[^\x20-\x7e]/g, (byte) => `%${(byte.charCodeAt(0) & 0xff).toString(16).toUpperCase().padStart(2, '0')}`)
}
