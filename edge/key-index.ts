/**
 * Index of tunnels, and of databases with an SSH tunnel, by the public keys in their `authorizedKeys`. It is updated as these change, so
 * that the cost of a lookup does not depend on their number. An index key is the type and the base64 text of a public key, without padding
 * and comment.
 */
export class KeyIndex {
  /** Hostname by index key, or a set of hostnames for a key with several. Most keys have one. */
  readonly #hostnames = new Map<string, string | Set<string>>()

  /** Replaces the `authorizedKeys` lines of a hostname. */
  replace(hostname: string, before: readonly string[], after: readonly string[]): void {
    if (before === after) return
    for (const line of before) this.#remove(keyIn(line), hostname)
    for (const line of after) this.#add(keyIn(line), hostname)
  }

  /** Returns at most `limit` hostnames whose tunnel or database lists the key, in no particular order. */
  of(type: string, blob: Buffer, limit: number): readonly string[] {
    const found = this.#hostnames.get(keyIn(`${type} ${blob.toString('base64')}`))
    if (found === undefined) return []
    return typeof found === 'string' ? [found] : firstOf(found, limit)
  }

  #add(key: string, hostname: string): void {
    const found = this.#hostnames.get(key)
    if (found === undefined) this.#hostnames.set(key, hostname)
    else if (typeof found !== 'string') found.add(hostname)
    else if (found !== hostname) this.#hostnames.set(key, new Set([found, hostname]))
  }

  #remove(key: string, hostname: string): void {
    const found = this.#hostnames.get(key)
    if (typeof found === 'object') found.delete(hostname)
    if (found === hostname || (typeof found === 'object' && found.size === 0)) this.#hostnames.delete(key)
  }
}

function keyIn(line: string): string {
  const comment = line.indexOf(' ', line.indexOf(' ') + 1)
  const key = comment === -1 ? line : line.slice(0, comment)
  return key.endsWith('=') ? key.replace(/=+$/, '') : key
}

function firstOf(all: Iterable<string>, limit: number): readonly string[] {
  const first: string[] = []
  for (const hostname of all) {
    if (first.length >= limit) break
    first.push(hostname)
  }
  return first
}
