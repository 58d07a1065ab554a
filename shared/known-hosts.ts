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
