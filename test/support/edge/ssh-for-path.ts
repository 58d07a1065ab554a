import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface SshForPath {
  /** Options such as `IdentityFile=/path/to/key`. They precede those of a command, and so take precedence (ssh_config(5)). */
  readonly options: readonly string[]
  /** Local port that replaces port 3000 of a command, which may be in use on this machine. */
  readonly localPort: number
}

/**
 * Creates a program `ssh` in a directory for PATH, so that commands from the documentation run unchanged. It runs the machine's
 * own client with a given configuration in place of the user's ~/.ssh.
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
