/**
 * Lines for a client's known_hosts, without line breaks, one a key. OpenSSH looks for the bare host at port 22 and for `[host]:port` at any
 * other (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).
 * @param publicKeys as OpenSSH writes them, without a comment: `ssh-ed25519 AAAA…`
 */
export function knownHostsLines(publicKeys: readonly string[], host: string, port: number): readonly string[] {
  const name = port === 22 ? host : `[${host}]:${port}`
  return publicKeys.map((key) => `${name} ${key}`)
}

/** {@link knownHostsLines} as a whole file, or the end of one. */
export const knownHostsFile = (...about: Parameters<typeof knownHostsLines>): string =>
  knownHostsLines(...about)
    .map((line) => `${line}\n`)
    .join('')
