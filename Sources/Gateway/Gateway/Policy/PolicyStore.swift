import CLinux
import Files
import PinfoldConfiguration

/// The last policy that was verified, on disk: for a start without the network, and so that none
/// that is older is taken after it.
enum PolicyStore {
    /// Readable by its owner only: it says what is allowed.
    private static let mode: mode_t = 0o600

    /// What is stored; `nil` if nothing is, or nothing that these keys have signed. A file that
    /// somebody else has put there is worth no more than one that was fetched.
    static func read(
        _ path: String, keys: [PolicyPublicKey]
    ) -> (document: PolicyDocument, envelope: PolicyEnvelope)? {
        guard
            let bytes = try? ConfigurationFiles.read(path, limit: PolicyEnvelope.maximumBytes),
            let envelope = try? PolicyEnvelope(bytes),
            (try? envelope.signers(among: keys)) != nil
        else { return nil }
        return (PolicyDocument(name: path, bytes: bytes), envelope)
    }

    /// Replaces what is stored, atomically.
    /// - Returns: why it could not be; `nil` if it is on the disk.
    static func write(_ bytes: [UInt8], to path: String) -> String? {
        do throws(FileError) {
            try Folder.make(Folder.of(path))
            try DurableFile.replace(path, by: bytes, mode: mode)
            return nil
        } catch {
            return "\(error)"
        }
    }
}
