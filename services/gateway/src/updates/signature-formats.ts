import type { ReleaseArtifact } from '@latchkey/proto/latchkey/apps/v1/release_pb';

/** The text of a signature by minisign or signify. */
function signatureText({ signature }: ReleaseArtifact): string | undefined {
  const texts = [signature, Buffer.from(signature, 'base64').toString()];
  return texts.find((text) => text.trim().startsWith('untrusted comment:'));
}

/**
 * The minisign signature of an artifact in Base64, which Tauri needs. Those of signify have no
 * trusted comment, without which Tauri rejects them.
 */
export function tauriSignature(artifact: ReleaseArtifact): string | undefined {
  const text = signatureText(artifact);
  return text?.includes('\ntrusted comment: ') ? Buffer.from(text).toString('base64') : undefined;
}

/** The Ed25519 signature of the bytes of an artifact, which Sparkle needs; none if prehashed. */
export function sparkleSignature(artifact: ReleaseArtifact): string | undefined {
  const text = signatureText(artifact);
  if (text === undefined) return Buffer.from(artifact.signature, 'base64').length === 64 ? artifact.signature.trim() : undefined;
  const line = text.trim().split(/\r?\n/)[1] ?? '';
  const bytes = Buffer.from(line, 'base64');
  return bytes.toString('latin1', 0, 2) === 'Ed' ? bytes.subarray(10, 74).toString('base64') : undefined;
}
