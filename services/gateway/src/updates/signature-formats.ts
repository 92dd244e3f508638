import { parseSignature } from '@latchkey/kit/crypto/artifact-signature';
import type { ReleaseArtifact } from '@latchkey/proto/latchkey/apps/v1/release_pb';

/**
 * The minisign signature of an artifact in Base64, which Tauri needs. Those of signify have no
 * trusted comment, without which Tauri rejects them.
 */
export function tauriSignature(artifact: ReleaseArtifact): string | undefined {
  const { text = '', trusted } = parseSignature(artifact.signature) ?? {};
  return trusted && Buffer.from(text).toString('base64');
}

/** The Ed25519 signature of the bytes of an artifact, which Sparkle needs; none if prehashed. */
export function sparkleSignature(artifact: ReleaseArtifact): string | undefined {
  const signature = parseSignature(artifact.signature);
  return signature?.isPrehashed ? undefined : signature?.bytes.toString('base64');
}
