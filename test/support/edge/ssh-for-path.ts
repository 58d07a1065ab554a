import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface SshForPath {
  /** As `IdentityFile=/home/somebody/key`. They come before those of a command, and so win over them (ssh_config(5)). */
  readonly options: readonly string[]
  /** Is forwarded to where a command says port 3000, which somebody else may have on this machine. */
  readonly localPort: number
}

/**
 * Makes a program `ssh` in a directory that is put in PATH, so that commands which are meant for a person run as they are written: the
 * machine's own client, with what a person's ~/.ssh would tell it, and without that of whoever runs the tests.
 * @returns its path
 */
export async function writeSsh(directory: string, { options, localPort }: SshForPath): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-c', 'command -v ssh'])
  const all = ['IdentitiesOnly=yes', 'IdentityAgent=none', 'BatchMode=yes', ...options]
  const program = join(directory, 'ssh')
  const script = [
    '#!/bin/sh',
    'for word do',
    '  shift',
    `  case $word in *localhost:3000) word=\${word%3000}${localPort} ;; esac`,
    '  set -- "$@" "$word"',
    'done',
    `exec ${stdout.trim()} -F none ${all.map((option) => `-o ${quoted(option)}`).join(' ')} "$@"`,
    '',
  ]
  await writeFile(program, script.join('\n'), { mode: 0o755 })
  return program
}

const quoted = (word: string): string => `'${word.replaceAll(`'`, `'\\''`)}'`
