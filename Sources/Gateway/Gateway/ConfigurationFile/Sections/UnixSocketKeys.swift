import CAccounts
import Files
import HTTPCore
import PinfoldConfiguration

// Unix sockets, of listeners and of the administration.

extension SnapshotReader {
    /// An address to listen on, or the path of a Unix socket; relative paths are relative to the
    /// file's folder.
    func listenAddress(_ field: Field) -> (address: ListenAddress, passed: PassedAddress?)? {
        guard case .scalar(let text, _) = field.node.content, text.hasPrefix(UnixSocketPath.scheme)
        else { return writtenAddress(field).map { (.network($0.endpoint), $0.passed) } }
        guard let path = unixSocketPath(text, of: field) else { return nil }
        if validation.environment.looksAtPaths {
            if let problem = PathAccess.problemCreating(in: Folder.of(path)) { field.warn(problem) }
        }
        return (.unix(UnixSocketPath(path: path)), nil)
    }

    /// The absolute path of a Unix socket.
    /// - Parameter text: the value of the field, which begins with `unix:`.
    func unixSocketPath(_ text: String, of field: Field) -> String? {
        let written = String(text.dropFirst(UnixSocketPath.scheme.count))
        guard !written.isEmpty, !written.utf8.contains(0), !written.hasSuffix("/"),
            let path = validation.path(written, writtenIn: field.node.origin)
        else {
            field.fail("\(quoted(text)) names no file", expected: "unix: and a path")
            return nil
        }
        guard path.utf8.count <= UnixSocketPath.maximumBytes else {
            field.fail(
                "\(quoted(path: path)) is too long for a Unix socket",
                expected: "a path of at most \(UnixSocketPath.maximumBytes) bytes")
            return nil
        }
        return path
    }
}

/// `mode` and `owner` of a listener.
extension ListenerConfiguration {
    static var unixSocketKeys: [ConfigurationKey<Self>] {
        [
            ConfigurationKey(
                "mode", byDefault: "\"0600\"",
                read: { _, field, listener in
                    guard let field, let mode = field.socketMode() else { return }
                    guard listener.unix != nil else {
                        return field.failWithoutSocket("mode", listener.passed)
                    }
                    listener.unix?.mode = mode
                },
                text: { $0.unix.map { YAMLText.quoted(UnixSocketPath.modeText($0.mode)) } }),
            ConfigurationKey(
                "owner", byDefault: "the gateway's user and group",
                read: { _, field, listener in
                    guard let field, let owner = field.socketOwner() else { return }
                    guard listener.unix != nil else {
                        return field.failWithoutSocket("owner", listener.passed)
                    }
                    listener.unix?.owner = owner
                },
                text: { $0.unix?.owner.map { YAMLText.quoted($0.text) } }),
        ]
    }
}

extension UnixSocketPath {
    static func modeText(_ mode: UInt32) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}

extension Field {
    /// - Parameter passed: the sockets that are taken over, which have what the service manager
    ///   gave them.
    fileprivate func failWithoutSocket(_ key: String, _ passed: PassedAddress?) {
        guard passed == nil else {
            return fail(
                "does not apply to sockets from the service manager",
                expected: key == "mode"
                    ? "SocketMode= in the socket unit, or address: unix:PATH"
                    : "SocketUser= and SocketGroup= in the socket unit, or address: unix:PATH")
        }
        fail("applies only to a Unix socket", expected: "address: unix:PATH, or no \(key)")
    }

    /// The permissions of a Unix socket.
    func socketMode() -> UInt32? {
        parsed(expected: "three octal digits after a 0, such as \"0660\"") { text in
            guard text.utf8.count == 4, text.hasPrefix("0") else { return nil }
            return UInt32(text, radix: 8)
        }
    }

    /// A user and perhaps a group of this machine, by their names or numbers.
    fileprivate func socketOwner() -> UnixSocketPath.Owner? {
        let expected = "user or user:group, by names or numbers of this machine"
        guard let text = text(expected: expected) else { return nil }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard (1...2).contains(parts.count),
            !parts.contains(where: { $0.isEmpty || $0.utf8.contains(0) })
        else {
            fail("\(quoted(text)) is no owner", expected: expected)
            return nil
        }
        guard let user = SystemNames.user(parts[0]) else {
            fail("there is no user \(quoted(parts[0]))", expected: expected)
            return nil
        }
        guard parts.count == 2 else {
            return UnixSocketPath.Owner(text: text, user: user, group: nil)
        }
        guard let group = SystemNames.group(parts[1]) else {
            fail("there is no group \(quoted(parts[1]))", expected: expected)
            return nil
        }
        return UnixSocketPath.Owner(text: text, user: user, group: group)
    }
}

/// The numbers of the machine's users and groups.
private enum SystemNames {
    /// Room for the texts of an entry.
    private static let entryBytes = 1 << 16

    static func user(_ name: String) -> UInt32? {
        if let number = UInt32(name), number != .max { return number }
        var entry = CAccounts.passwd()
        var found: UnsafeMutablePointer<CAccounts.passwd>?
        var memory = [CChar](repeating: 0, count: entryBytes)
        let result = getpwnam_r(name, &entry, &memory, memory.count, &found)
        return result == 0 && found != nil ? entry.pw_uid : nil
    }

    static func group(_ name: String) -> UInt32? {
        if let number = UInt32(name), number != .max { return number }
        var entry = CAccounts.group()
        var found: UnsafeMutablePointer<CAccounts.group>?
        var memory = [CChar](repeating: 0, count: entryBytes)
        let result = getgrnam_r(name, &entry, &memory, memory.count, &found)
        return result == 0 && found != nil ? entry.gr_gid : nil
    }
}
