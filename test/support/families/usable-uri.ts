import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Instance } from '../api/answers.ts'

/** Parameter that names the CA file, by the scheme of the uri. */
const CA_PARAMETER: Readonly<Record<string, string>> = {
  'postgresql:': 'sslrootcert',
  'mysql:': 'ssl-ca',
  'mongodb:': 'tlsCAFile',
}

/** Returns the uri of an instance for a stock client, after saving the CA of the response in `directory`, as a caller must. */
export async function usableUri({ uri, tls, id }: Instance, directory: string): Promise<string> {
  if (!tls.required) return uri
  const url = new URL(uri)
  const file = join(directory, `${id}.crt`)
  await writeFile(file, tls.ca ?? '')
  url.searchParams.set(CA_PARAMETER[url.protocol] ?? '', file)
  return url.href
}
