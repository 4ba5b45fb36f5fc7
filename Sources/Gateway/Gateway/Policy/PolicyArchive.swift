import CLinux
import Files
import PinfoldConfiguration

/// The last policies that were in force, on disk, so that one command can bring one of them back.
struct PolicyArchive: Sendable {
    /// How many are kept.
    static let limit = 8
    /// Readable by its owner only, like the one in force.
    private static let mode: mode_t = 0o600

    /// The folder, which has a file for each serial.
    let folder: String

    private func path(_ serial: Int64) -> String { "\(folder)/\(serial).yaml" }

    /// The serials that are kept, the highest first.
    var serials: [Int64] {
        guard let list = opendir(folder) else { return [] }
        defer { closedir(list) }
        var serials: [Int64] = []
        while let entry = readdir(list) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasSuffix(".yaml"), let serial = PolicyEnvelope.serial(name.dropLast(5))
            else { continue }
            serials.append(serial)
        }
        return serials.sorted(by: >)
    }

    /// The policy with a serial; `nil` if it is not kept, or is not one that these keys have
    /// signed.
    func policy(_ serial: Int64, keys: [PolicyPublicKey]) -> PolicyEnvelope? {
        guard let found = PolicyStore.read(path(serial), keys: keys)?.envelope,
            found.serial == serial
        else { return nil }
        return found
    }

    /// Keeps a policy, and removes those with the lowest serials. That one cannot be kept is no
    /// harm: it only cannot be brought back by this gateway.
    func keep(_ envelope: PolicyEnvelope) {
        guard PolicyStore.write(envelope.bytes, to: path(envelope.serial)) == nil else { return }
        for serial in serials.dropFirst(Self.limit) { unlink(path(serial)) }
    }
}
