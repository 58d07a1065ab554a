/** How many strings a key of a type is of, after its name, and how long the one that is the key must be. */
interface Form {
  readonly strings: number
  readonly key: number
  /** Name of the curve, which comes before the point (RFC 5656, section 3.1). */
  readonly curve?: string
  readonly isLong: (key: Buffer) => boolean
}

const MIN_RSA_BITS = 2048

const ofBytes = (bytes: number) => (key: Buffer) => key.length === bytes
const ecdsa = (curve: string, bytes: number): Form => ({ strings: 2, curve, key: 1, isLong: ofBytes(bytes) })

const FORMS: Readonly<Record<string, Form>> = {
  'ssh-ed25519': { strings: 1, key: 0, isLong: ofBytes(32) },
  'ecdsa-sha2-nistp256': ecdsa('nistp256', 65),
  'ecdsa-sha2-nistp384': ecdsa('nistp384', 97),
  'ecdsa-sha2-nistp521': ecdsa('nistp521', 133),
  'ssh-rsa': { strings: 2, key: 1, isLong: (modulus) => bitsOf(modulus) >= MIN_RSA_BITS },
  'sk-ssh-ed25519@openssh.com': { strings: 2, key: 0, isLong: ofBytes(32) },
  'sk-ecdsa-sha2-nistp256@openssh.com': { ...ecdsa('nistp256', 65), strings: 3 },
}

/**
 * Whether a line of OpenSSH's public-key format holds a whole key of the type that it names, and of a type and length that may log in
 * (surface, section 5). Of the format: RFC 4253, section 6.6, and OpenSSH's PROTOCOL.u2f.
 */
export function isWholeKey(line: string): boolean {
  const [type = '', base64 = ''] = line.split(' ')
  const form = FORMS[type]
  const [name, ...strings] = stringsOf(Buffer.from(base64, 'base64')) ?? []
  return form !== undefined && name?.toString() === type && fits(strings, form)
}

function fits(strings: readonly Buffer[], { strings: count, curve, key, isLong }: Form): boolean {
  if (strings.length !== count || (curve !== undefined && strings[0]?.toString() !== curve)) return false
  return isLong(strings[key] ?? Buffer.alloc(0))
}

/** The strings that a blob is of (RFC 4251, section 5); undefined when it ends amid one. */
function stringsOf(blob: Buffer): readonly Buffer[] | undefined {
  const strings: Buffer[] = []
  let at = 0
  while (at < blob.length) {
    if (at + 4 > blob.length) return undefined
    const end = at + 4 + blob.readUInt32BE(at)
    if (end > blob.length) return undefined
    strings.push(blob.subarray(at + 4, end))
    at = end
  }
  return strings
}

/** Of a positive mpint (RFC 4251, section 5). */
function bitsOf(mpint: Buffer): number {
  const first = mpint.findIndex((byte) => byte !== 0)
  if (first < 0) return 0
  return (mpint.length - first) * 8 - Math.clz32(mpint[first] ?? 0) + 24
}
