import { join } from 'node:path'
import { bedSettings, type BedSettings, OWNED, script } from './bed.ts'
import { POSTGRES_IMAGES } from './cluster.ts'
import { clientsOf, type Kubernetes } from './kubectl.ts'
import { run } from './run.ts'

/** Kubernetes beside the suite's, for tests that would disturb Mooring for other tests. */
export interface SecondCluster extends AsyncDisposable {
  readonly clients: Kubernetes
  /** Address at which pods of the second cluster reach this machine. */
  readonly hostAddress: string
}

/**
 * Starts a second cluster with the images of the suite.
 * @param image name of Mooring's image, which the suite has built: `mooring:<tag>`
 * @param number 2 to 9, different for clusters that run at the same time: part of their names and networks
 */
export async function startSecondCluster(image: string, number = 2): Promise<SecondCluster> {
  const first = await bedSettings()
  const settings = settingsBeside(first, number)
  const env = { ...settings, ...OWNED }
  const kubeconfig = await run({ title: 'starting a second Kubernetes', file: script('up'), args: [], env })
  const images = join(first.TC_CACHE, 'images')
  const archives = [image, ...Object.values(POSTGRES_IMAGES)].map((name) => join(images, `${name.replace(':', '-')}.tar`))
  await run({ title: 'importing the images', file: script('image-import'), args: archives, env })
  return {
    clients: clientsOf(kubeconfig),
    hostAddress: `${settings.TC_NET}.1`,
    async [Symbol.asyncDispose]() {
      await run({ title: 'stopping the second Kubernetes', file: script('down'), args: [], env })
    },
  }
}

/** Returns names and networks that do not overlap with those of the suite's own test bed. */
function settingsBeside({ TC_NAME, TC_STATE, TC_NET, TC_POD_CIDR, TC_SVC_CIDR }: BedSettings, number: number) {
  const beside = number - 1
  return {
    TC_NAME: `${TC_NAME.slice(0, 9)}-${number}`,
    TC_STATE: `${TC_STATE}-${number}`,
    TC_NET: TC_NET.replace(/\d+$/, (octet) => `${(Number(octet) + beside) % 256}`),
    TC_POD_CIDR: TC_POD_CIDR.replace(/\d+(?=\.0\/24$)/, (octet) => `${(Number(octet) + beside) % 256}`),
    TC_SVC_CIDR: TC_SVC_CIDR.replace(/\d+(?=\.0\.0\/16$)/, (octet) => `${(Number(octet) + 10 * beside) % 256}`),
  }
}
