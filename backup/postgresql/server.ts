import type pg from 'pg'

/** Program of the scratch server that a restore drill starts. It is as confined as the database's own server. */
export interface ScratchProgram {
  /** Absolute path of `postgres`, of the major version of the server. */
  readonly postgres: string
  /** Environment of the program, such as `LD_LIBRARY_PATH`. Nothing else is passed on. */
  readonly env: Readonly<Record<string, string>>
  /** User that owns the scratch files and runs the program; absent: the user of this process, which is then not root. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
  /**
   * Command that confines the program: it runs `file` with `args`, followed by the program and its arguments. Descriptors 3, 4 and 5 are the
   * directories of data, configuration and log. `root` is an empty directory to mount on.
   */
  readonly launcher?:
    | ((
        root: string,
      ) =>
        { readonly file: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> } | undefined)
    | undefined
}

/** PostgreSQL server whose data an agent backs up. */
export interface PostgresqlFiles {
  readonly dataDirectory: string
  /** Directory into which the server's `archive_command` copies WAL, as this process sees it. May be inside the data directory. */
  readonly spoolDirectory: string
  /** Directory of mode 0700 for the scratch servers of drills, which the agent creates and empties. On a volume with space for the database. */
  readonly scratchDirectory: string
  /** Opens a connection of the administrator, a superuser, to a database; by default `postgres`. The agent ends it. */
  connect(database?: string): Promise<pg.Client>
  /** Name of the administrator's role, as which a drill logs in to the scratch server. */
  readonly administrator: string
  readonly program: ScratchProgram
  /** Version such as `15.4`. */
  readonly engineVersion: string
}
