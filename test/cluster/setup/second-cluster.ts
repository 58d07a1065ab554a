import { join } from 'node:path'
import { bedSettings, type BedSettings, OWNED, script } from './bed.ts'
import { POSTGRES_IMAGES } from './cluster.ts'
import { clientsOf, type Kubernetes } from './kubectl.ts'
import { run } from './run.ts'

/** A Kubernetes beside the suite's, for what would take Mooring away from the other tests. */
export interface SecondCluster extends AsyncDisposable {
  readonly clients: Kubernetes
  /** Address of this machine under which its pods reach it. */
  readonly hostAddress: string
}

/**
 * @param image name of Mooring's image, which the suite has built: `mooring:<tag>`
 * @param place its networks and names are of: 2, or another number up to 9 for one that runs at the same time
 */
export async function startSecondCluster(image: string, place = 2): Promise<SecondCluster> {
  const first = await bedSettings()
  const settings = settingsBeside(first, place)
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

/** Names and networks that do not overlap with those of the suite's own bed. */
function settingsBeside({ TC_NAME, TC_STATE, TC_NET, TC_POD_CIDR, TC_SVC_CIDR }: BedSettings, place: number) {
  const beside = place - 1
  return {
    TC_NAME: `${TC_NAME.slice(0, 9)}-${place}`,
    TC_STATE: `${TC_STATE}-${place}`,
    TC_NET: TC_NET.replace(/\d+$/, (octet) => `${(Number(octet) + beside) % 256}`),
    TC_POD_CIDR: TC_POD_CIDR.replace(/\d+(?=\.0\/24$)/, (octet) => `${(Number(octet) + beside) % 256}`),
    TC_SVC_CIDR: TC_SVC_CIDR.replace(/\d+(?=\.0\.0\/16$)/, (octet) => `${(Number(octet) + 10 * beside) % 256}`),
  }
}
