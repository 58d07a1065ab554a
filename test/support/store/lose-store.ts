import type { Worker } from 'node:worker_threads'

/** For `node --import`: SIGUSR2 ends the first thread that the process has started, which in an embedded Mooring is the one that writes the state. */
process.once('worker', (thread: Worker) => {
  process.on('SIGUSR2', () => void thread.terminate())
})
