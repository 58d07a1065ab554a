import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Instance } from '../api/answers.ts'

/** The uri of an instance for a stock client, once the CA of the answer was saved in `directory`, as its caller has to. */
export async function usableUri({ uri, tls, id }: Instance, directory: string): Promise<string> {
  if (!tls.required) return uri
  const url = new URL(uri)
  const file = join(directory, `${id}.crt`)
  await writeFile(file, tls.ca ?? '')
  url.searchParams.set('sslrootcert', file)
  return url.href
}
