import type { Worker } from 'node:worker_threads'

/** Preloaded by `node --import`: SIGUSR2 ends the first thread of the process, which in embedded mode writes the state. */
process.once('worker', (thread: Worker) => {
  process.on('SIGUSR2', () => void thread.terminate())
})
