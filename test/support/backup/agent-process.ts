import { pino } from 'pino'
import { createAgent } from '../../../backup/agent.ts'
import { systemBackupClock } from '../../../backup/clock.ts'
import { restore } from '../../../backup/postgresql/restore.ts'
import { createDirectoryRepository } from '../../../backup/repository/directory.ts'
import type { PostgresqlFiles } from '../../../backup/postgresql/server.ts'
import { ADMIN, clientsOf } from '../postgresql/postgres.ts'
import { faulty, type Operation } from './faulty-repository.ts'
import { PREFIX, QUICK } from './quick.ts'

/** Input of this program, as JSON in its first argument. */
export interface AgentProcess {
  readonly directory: string
  readonly files: Omit<PostgresqlFiles, 'connect'>
  readonly port: number
  /** Operation at which the process kills itself. Absent: it runs until it is killed. */
  readonly die?: { readonly operation: Operation; readonly key: string; readonly when: 'before' | 'after' }
  readonly schedule?: object
  /** Restores into this directory instead of running an agent. */
  readonly restore?: { readonly into: string; readonly time: string }
}

const input = JSON.parse(process.argv[2] ?? '') as AgentProcess
const { directory, files, port, die } = input
const repository = faulty(createDirectoryRepository({ directory }))
const kill = (operation: Operation, key: string): void => {
  if (die?.operation === operation && new RegExp(die.key).test(key)) process.kill(process.pid, 'SIGKILL')
}
if (die) repository[die.when === 'before' ? 'fault' : 'after'] = kill

if (input.restore) {
  const { into, time } = input.restore
  await restore({ repository, prefix: PREFIX, time: new Date(time), into, signal: new AbortController().signal })
} else {
  createAgent({
    ...{ repository, prefix: PREFIX, clock: systemBackupClock },
    server: { ...files, connect: (database = 'postgres') => clientsOf({ host: '127.0.0.1', port, ...ADMIN }).open({ database }) },
    log: pino({ level: 'silent' }),
    schedule: { ...QUICK, ...input.schedule },
  })
}
