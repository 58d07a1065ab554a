/** Wire format of one key type: a sequence of strings after the type name (RFC 4253, section 6.6). */
interface Form {
  /** Number of strings after the type name. */
  readonly strings: number
  /** Index of the string that holds the key itself. */
  readonly key: number
  /** Name of the curve, in the string before the point (RFC 5656, section 3.1). */
  readonly curve?: string
  /** Whether the key has the length of its type, or enough bits. */
  readonly isLongEnough: (key: Buffer) => boolean
}

const MIN_RSA_BITS = 2048

const ofBytes = (bytes: number) => (key: Buffer) => key.length === bytes
const ecdsa = (curve: string, bytes: number): Form => ({ strings: 2, curve, key: 1, isLongEnough: ofBytes(bytes) })

const FORMS: Readonly<Record<string, Form>> = {
  'ssh-ed25519': { strings: 1, key: 0, isLongEnough: ofBytes(32) },
  'ecdsa-sha2-nistp256': ecdsa('nistp256', 65),
  'ecdsa-sha2-nistp384': ecdsa('nistp384', 97),
  'ecdsa-sha2-nistp521': ecdsa('nistp521', 133),
  'ssh-rsa': { strings: 2, key: 1, isLongEnough: (modulus) => bitsOf(modulus) >= MIN_RSA_BITS },
  'sk-ssh-ed25519@openssh.com': { strings: 2, key: 0, isLongEnough: ofBytes(32) },
  'sk-ecdsa-sha2-nistp256@openssh.com': { ...ecdsa('nistp256', 65), strings: 3 },
}

/**
 * Whether a line in OpenSSH's public-key format (sshd(8), "AUTHORIZED_KEYS FILE FORMAT") holds a complete key of the type that it names,
 * and of a type and length that may log in (docs/ssh-logins.md). Format: RFC 4253, section 6.6, and OpenSSH's PROTOCOL.u2f.
 */
export function isWholeKey(line: string): boolean {
  const [type = '', base64 = ''] = line.split(' ')
  const form = FORMS[type]
  const [name, ...strings] = stringsOf(Buffer.from(base64, 'base64')) ?? []
  return form !== undefined && name?.toString() === type && fits(strings, form)
}

function fits(strings: readonly Buffer[], { strings: count, curve, key, isLongEnough }: Form): boolean {
  if (strings.length !== count || (curve !== undefined && strings[0]?.toString() !== curve)) return false
  return isLongEnough(strings[key] ?? Buffer.alloc(0))
}

/** Splits a blob into its strings (RFC 4251, section 5). Returns undefined when the last string is incomplete. */
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

/** Returns the number of bits of a positive mpint (RFC 4251, section 5). */
function bitsOf(mpint: Buffer): number {
  const first = mpint.findIndex((byte) => byte !== 0)
  if (first < 0) return 0
  return (mpint.length - first) * 8 - Math.clz32(mpint[first] ?? 0) + 24
}

/**
 * Returns lines for a client's known_hosts file, one per key, without line breaks. OpenSSH uses the bare host at port 22 and `[host]:port`
 * at other ports (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT").
 * @param publicKeys in OpenSSH format without a comment: `ssh-ed25519 AAAA…`
 */
export function knownHostsLines(publicKeys: readonly string[], host: string, port: number): readonly string[] {
  const name = port === 22 ? host : `[${host}]:${port}`
  return publicKeys.map((key) => `${name} ${key}`)
}

/** Returns {@link knownHostsLines} as text with line breaks, for a file or the end of one. */
export const knownHostsFile = (...about: Parameters<typeof knownHostsLines>): string =>
  knownHostsLines(...about)
    .map((line) => `${line}\n`)
    .join('')
