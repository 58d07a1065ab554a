import type { DebianPackage } from './archives.ts'

/*
 * Shared libraries that the servers load beyond those that every Linux has. They come from Debian 11, whose packages do not change any
 * more; MariaDB's liburing comes from Debian 12. Each installation has its own copies, and no package is installed on the machine.
 */

/** Name, version, size in bytes, and SHA-256 of the package. */
type Pin = readonly [name: string, version: string, bytes: number, sha256: string]

export const pinned =
  (suite: DebianPackage['suite']) =>
  ([name, version, bytes, sha256]: Pin): DebianPackage => ({ client: 'apt', suite, name, version, bytes, sha256 })

const MYSQL: readonly Pin[] = [
  ['libaio1', '0.3.112-9', 12_468, '1397318eff697140d5a45363db04b95b6a42a382ef4568088cb8b275e8fc599b'],
  ['libnuma1', '2.0.12-1+b1', 26_260, '5a0d21a96ec7a5d50e0c2352ac086dde7dd9cd6018f80f2a74ec6fd4dd47b4bf'],
]

const MARIADB: readonly Pin[] = [
  ['liblz4-1', '1.9.3-2', 57_492, '79ac6e9ca19c483f2e8effcc3401d723dd9dbb3a4ae324714de802adb21a8117'],
  ['libpcre2-8-0', '10.36-2+deb11u1', 247_784, 'ee192c8d22624eb9d0a2ae95056bad7fb371e5abc17e23e16b1de3ddb17a1064'],
  ['libsystemd0', '247.3-7+deb11u5', 376_012, 'b6f43b910f2dff96b50626357712881895891f9559c7fdd62c4b649e400f733d'],
  ['libzstd1', '1.4.8+dfsg-2.1', 318_644, '5dcadfbb743bfa1c1c773bff91c018f835e8e8c821d423d3836f3ab84773507b'],
  ['libgcrypt20', '1.8.7-6', 563_136, '7a2e0eef8e0c37f03f3a5fcf7102a2e3dc70ba987f696ab71949f9abf36f35ef'],
  ['libgpg-error0', '1.38-2', 77_536, '16a507fb20cc58b5a524a0dc254a9cb1df02e1ce758a2d8abde0bc4a3c9b7c26'],
  ['liblzma5', '5.2.5-2.1~deb11u1', 168_496, '1c79a02415ca5ee7234ac60502fb33ee94fa70b02d1c329a6a14178f8329c435'],
]

/** Debian 11 has an older version of this library, with another name. */
const URING: Pin = ['liburing2', '2.3-3', 12_572, 'c23077e3640e6cb4b819c134b3f41d5cf21b3edac099654b1b4142c3069a39a3']

const MONGODB: readonly Pin[] = [
  ['libbrotli1', '1.0.9-2+b2', 278_652, '65ca7d8b03e9dac09c5d544a89dd52d1aeb74f6a19583d32e4ff5f0c77624c24'],
  ['libcom-err2', '1.46.2-2', 74_208, 'd478f132871f4ab8352d39becf936d0ad74db905398bf98465d8fe3da6fb1126'],
  ['libcurl4', '7.74.0-1.3+deb11u13', 347_036, 'a8e9795ec5045e54866af3640c1f2abcf07ad2a56ecd0efa25fe57342ab34ebf'],
  ['libffi7', '3.3-6', 23_096, '30ca89bfddae5fa6e0a2a044f22b6e50cd17c4bc6bc850c579819aeab7101f0f'],
  ['libgcrypt20', '1.8.7-6', 563_136, '7a2e0eef8e0c37f03f3a5fcf7102a2e3dc70ba987f696ab71949f9abf36f35ef'],
  ['libgmp10', '2:6.2.1+dfsg-1+deb11u1', 563_308, 'fc117ccb084a98d25021f7e01e4dfedd414fa2118fdd1e27d2d801d7248aebbc'],
  ['libgnutls30', '3.7.1-5+deb11u5', 1_340_088, 'cdfacece6f69c9eeecd509c7c44e1d5b47e09ad5e48f732ae151ded1afce45b4'],
  ['libgpg-error0', '1.38-2', 77_536, '16a507fb20cc58b5a524a0dc254a9cb1df02e1ce758a2d8abde0bc4a3c9b7c26'],
  ['libgssapi-krb5-2', '1.18.3-6+deb11u5', 165_652, 'f7edf1381e11c3ff63f2a6669101c09b2d0b0c56c782bd3b3b60bd02cacb0066'],
  ['libhogweed6', '3.7.3-1', 320_468, '6aab2e892cdb2dfba45707601bc6c3b19aa228f70ae5841017f14c3b0ca3d22f'],
  ['libidn2-0', '2.3.0-5', 86_108, 'cb80cd769171537bafbb4a16c12ec427065795946b3415781bc9792e92d60b59'],
  ['libk5crypto3', '1.18.3-6+deb11u5', 114_232, '51b242c8423244fd661cdc91213aa870998e29d078930f303d5881537ae4f15e'],
  ['libkeyutils1', '1.6.1-2', 15_444, 'f01060b434d8cad3c58d5811d2082389f11b3db8152657d6c22c1d298953f2a5'],
  ['libkrb5-3', '1.18.3-6+deb11u5', 363_088, '198cd5a8616a98464283ab46fce7f86c5bb807a51257881cce81b05cc1f6d5fe'],
  ['libkrb5support0', '1.18.3-6+deb11u5', 65_664, '5ef1bac55f8e8f0736ee554429c77c2cb7c0d03773d6b60a16b552c185aa490f'],
  ['libldap-2.4-2', '2.4.57+dfsg-3+deb11u1', 232_196, '3d79ee84c42c1d1b58a6e0d7debc7e3c8444147b84412b8248a7789809bc3163'],
  ['liblzma5', '5.2.5-2.1~deb11u1', 168_496, '1c79a02415ca5ee7234ac60502fb33ee94fa70b02d1c329a6a14178f8329c435'],
  ['libnettle8', '3.7.3-1', 270_376, 'e4f8ec31ed14518b241eb7b423ad5ed3f4a4e8ac50aae72c9fd475c569582764'],
  ['libnghttp2-14', '1.43.0-1+deb11u1', 77_216, '96c380d74b9600ee3c300773c60a7d56a78017ac4a0b98d70b52708c1c7e8fd9'],
  ['libp11-kit0', '0.23.22-1', 336_536, 'bfef5f31ee1c730e56e16bb62cc5ff8372185106c75bf1ed1756c96703019457'],
  ['libpsl5', '0.21.0-1.2', 57_324, 'd716f5b4346ec85bb728f4530abeb1da4a79f696c72d7f774c59ba127c202fa7'],
  ['librtmp1', '2.4+20151223.gitfa8646d.1-2+b2', 60_824, 'e1f69020dc2c466e421ec6a58406b643be8b5c382abf0f8989011c1d3df91c87'],
  ['libsasl2-2', '2.1.27+dfsg-2.1+deb11u1', 105_940, '2e86ab7a3329aad4b7350a9b067fe8f80b680302f2f82d94f73f9bf075404460'],
  ['libssh2-1', '1.9.0-2+deb11u1', 155_648, '4e8f5c1bce75c2006309e1dcb952675d5760c9f7445b20c8d57c14e760fe7e07'],
  ['libssl1.1', '1.1.1w-0+deb11u1', 1_565_664, 'aadf8b4b197335645b230c2839b4517aa444fd2e8f434e5438c48a18857988f7'],
  ['libtasn1-6', '4.16.0-2+deb11u1', 54_908, '6ebb579337cdc9d6201237a66578425a7a221db622524354e27c0c1bcb6dd7ca'],
  ['libunistring2', '0.9.10-4', 379_316, '654433ad02d3a8b05c1683c6c29a224500bf343039c34dcec4e5e9515345e3d4'],
  ['zlib1g', '1:1.2.11.dfsg-2+deb11u2', 91_420, '03d2ab2174af76df6f517b854b77460fbdafc3dac0dca979317da67538159a3e'],
]

export const MYSQL_LIBRARIES = MYSQL.map(pinned('bullseye'))
export const MARIADB_LIBRARIES = [...MYSQL_LIBRARIES, ...MARIADB.map(pinned('bullseye')), pinned('bookworm')(URING)]
/** The largest part is what libcurl loads. */
export const MONGODB_LIBRARIES = MONGODB.map(pinned('bullseye'))
