import { expect, test } from 'vitest'
import { createDockerClient } from './docker-client.ts'

// A shell stands where the client program is: it runs commands and fails like any other program.
const shell = createDockerClient('sh')
const run = (script: string, options?: { timeoutMs?: number; signal?: AbortSignal }) => shell.run(['-c', script], options)

test('a command returns its output without the last line feed', async () => {
  expect(await run('echo one; echo two')).toBe('one\ntwo')
})

test.each([
  {
    what: 'the last line of its errors',
    script: 'echo first >&2; echo "Error: no such image" >&2; exit 1',
    says: 'Error: no such image',
  },
  {
    what: 'no advice of the client',
    script: 'echo "docker: no daemon." >&2; echo "See \'docker run --help\'." >&2; exit 125',
    says: 'docker: no daemon.',
  },
  { what: 'its status when it prints nothing', script: 'exit 3', says: 'docker -c ended with 3' },
  { what: 'a signal', script: 'kill -9 $$', says: 'docker -c ended with a signal' },
])('a command that fails throws an error with $what', async ({ script, says }) => {
  await expect(run(script)).rejects.toMatchObject({ code: 'docker_failed', message: says })
})

test('a command that takes too long is ended', async () => {
  const late = run('exec sleep 60', { timeoutMs: 100 })
  await expect(late).rejects.toMatchObject({ code: 'docker_failed', message: 'docker -c did not end within 0.1 s' })
})

test('a command whose signal aborts is ended with the reason of the signal', async () => {
  const abort = new AbortController()
  const running = run('exec sleep 60', { signal: abort.signal, timeoutMs: 0 })
  abort.abort(new Error('stopped'))
  await expect(running).rejects.toThrow('stopped')
})

test('a machine without the program has an error of its own', async () => {
  const missing = createDockerClient('/nonexistent/docker')
  await expect(missing.run(['version'])).rejects.toMatchObject({ code: 'docker_missing' })
})
