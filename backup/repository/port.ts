/** One object in a repository. */
export interface Entry {
  /** Key with `/` between its parts, such as `3f1c…/wal/000000010000000000000003.gz`. */
  readonly key: string
  readonly sizeBytes: number
}

/** Result of a {@link Repository.put}. */
export interface Stored {
  readonly sizeBytes: number
  /** SHA-256 of the bytes, in hex. */
  readonly sha256: string
}

export const RepositoryCode = {
  /** The repository cannot be reached, refuses the credentials, or does not answer in time. The caller should retry. */
  unavailable: 'repository_unavailable',
  /** The repository has no space left, or a quota is reached. */
  full: 'repository_full',
  /** There is no object with the key. */
  notFound: 'repository_not_found',
} as const

/**
 * Where backups are kept: a directory, a volume, or a bucket of S3. All methods throw MooringError with a code of {@link RepositoryCode}; its message
 * names the repository and the reason, and no credentials. A key is `[A-Za-z0-9._-]+` parts joined by `/`, at most 512 characters; a part has at most
 * 255 characters and is not `.` or `..`. A key followed by `/` is not the beginning of another key: a directory cannot have a file and a directory of one name. A signal that aborts makes a method throw its reason.
 */
export interface Repository {
  /** What messages call the repository, such as `/var/backups` or `s3://bucket/prefix`. */
  readonly name: string
  /** Writes an object. Another reader sees all of it or none, also after a crash; it is durable when the promise resolves. Replaces an existing object. */
  put(key: string, body: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<Stored>
  /** Reads an object. The stream fails with `unavailable` when it stalls. @throws `notFound` before the first byte */
  get(key: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  /** Lists the objects whose keys begin with `prefix` (which ends with `/`), in the order of their keys. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<Entry>
  /** Removes objects. A missing one is no error. */
  delete(keys: readonly string[], signal?: AbortSignal): Promise<void>
}
