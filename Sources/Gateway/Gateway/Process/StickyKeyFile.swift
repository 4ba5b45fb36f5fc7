import CLinux
import Files
import Logging
import PinfoldConfiguration
import PinfoldEngine

/// The file with the key of the cookies that bind clients to servers: made by the first process
/// that needs it, so that clients stay bound over restarts and upgrades.
enum StickyKeyFile {
    /// Why the file cannot be used.
    enum UseError: Error, CustomStringConvertible {
        case file(FileError)
        /// It is not what this program has written.
        case content(String)

        var description: String {
            switch self {
            case .file(let error): "\(error)"
            case .content(let path):
                "\(path): not a file of \(StickyKey.byteCount) bytes; remove it to have a new key "
                    + "made"
            }
        }
    }

    /// The file's key, or a new one that has been written there.
    static func key(_ path: String) throws(UseError) -> StickyKey {
        if let known = try read(path) { return known }
        let bytes = (0..<StickyKey.byteCount).map { _ in UInt8.random(in: 0...255) }
        do throws(FileError) {
            try Folder.make(Folder.of(path))
            try DurableFile.create(path, of: bytes, mode: 0o600)
        } catch {
            // Another process may have been faster.
            guard error.code == EEXIST, let known = try read(path) else { throw .file(error) }
            return known
        }
        guard let made = StickyKey(bytes) else { throw .content(path) }
        return made
    }

    /// `nil` if there is no file.
    private static func read(_ path: String) throws(UseError) -> StickyKey? {
        let bytes: [UInt8]
        do throws(FileError) {
            let file = try OpenFile(path, followsLinks: false)
            guard file.kind == S_IFREG else { throw FileError(.read, path, EINVAL) }
            bytes = try file.contents(most: StickyKey.byteCount)
        } catch {
            if error.code == ENOENT { return nil }
            throw .file(error)
        }
        guard let key = StickyKey(bytes) else { throw .content(path) }
        return key
    }
}

extension GatewayProcess {
    /// The key for a configuration: that of its file, if clients are bound to servers. Without the
    /// file, it lasts as long as the process.
    func stickyKey(for configuration: ConfigurationSnapshot) -> StickyKey {
        if let stickyKey { return stickyKey }
        guard configuration.hasStickyRoutes else { return StickyKey() }
        let key: StickyKey
        do {
            key = try StickyKeyFile.key(configuration.cache.stickyKeyFile)
        } catch {
            logger.warning(
                "the key of upstreams.sticky cannot be kept, only until the gateway ends",
                metadata: ["error": "\(error)"])
            key = StickyKey()
        }
        stickyKey = key
        return key
    }
}
