import CLinux
import Files
import Locking
import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS
import SharedCacheLevel
import Trust

/// A number for a set of trust anchors of the system: the same on every machine that has the same
/// certificates, in whatever files, order and wording.
struct SystemRootsDigest {
    /// Bytes of a file at most; what is longer counts up to there.
    private static let maximumBytes = 16 << 20

    private var certificates: Set<SHA256Digest> = []

    /// Reads them where the library does: what cannot be read, it does not trust either.
    /// - Parameters:
    ///   - file: all certificates in it are trusted.
    ///   - folders: certificates are found there by the names of their files.
    init(file: String, folders: [String]) {
        add(file: file)
        for folder in folders {
            for name in Self.names(in: folder) where Self.isHash(name) {
                add(file: "\(folder)/\(name)")
            }
        }
    }

    /// Of the system's at present.
    static var ofSystem: SystemRootsDigest {
        let places = SystemRootsVersion.places
        return SystemRootsDigest(file: places.file, folders: places.folders)
    }

    /// `nil` only if the library is out of memory.
    var number: UInt64? {
        var bytes = Array("pinfold system roots".utf8)
        for digest in certificates.map(\.bytes).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            bytes += digest
        }
        return SHA256Digest(hashing: bytes.span)?.prefix
    }

    private mutating func add(file path: String) {
        guard let bytes = try? OpenFile(path).contents(most: Self.maximumBytes) else { return }
        // The library may find certificates where this program finds none.
        if !bytes.withUnsafeBytes({ add(blocks: $0) }) { insert(bytes) }
    }

    /// Adds the blocks of a PEM file (RFC 7468) as they are written there, but for the ends of
    /// lines: decoding hundreds of them would take longer than all the rest of a start.
    /// - Returns: whether there are any.
    private mutating func add(blocks file: UnsafeRawBufferPointer) -> Bool {
        var hasBlocks = false
        var body: [UInt8]?
        var rest = file[...]
        while !rest.isEmpty {
            let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
            var line = rest[..<end]
            rest = rest[min(end + 1, rest.endIndex)...]
            while let last = line.last, last <= UInt8(ascii: " ") { line.removeLast() }
            if line.starts(with: Self.begin) {
                body = []
                body?.reserveCapacity(4096)
            } else if line.starts(with: Self.end) {
                if let block = body.take() {
                    insert(block)
                    hasBlocks = true
                }
            } else {
                body?.append(contentsOf: line)
            }
        }
        return hasBlocks
    }

    private static let begin = Array("-----BEGIN ".utf8)
    private static let end = Array("-----END ".utf8)

    private mutating func insert(_ bytes: [UInt8]) {
        if let digest = SHA256Digest(hashing: bytes.span) { certificates.insert(digest) }
    }

    private static func names(in folder: String) -> [String] {
        guard let list = opendir(folder) else { return [] }
        defer { closedir(list) }
        var names: [String] = []
        while let entry = readdir(list) {
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
                        String(cString: $0)
                    }
                })
        }
        return names
    }

    /// The hash of a name, in eight digits, and a number: other files are not looked at.
    private static func isHash(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0].utf8.count == 8 && UInt32(parts[0], radix: 16) != nil
            && UInt32(parts[1]) != nil
    }
}

extension SystemTrust {
    private static let known = Locked<(version: SystemRootsVersion, number: UInt64)?>(nil)

    /// What a configuration trusts the system's roots with. They are read if they have changed
    /// since the last time, which takes some milliseconds.
    init(_ configuration: ConfigurationSnapshot) {
        guard configuration.trustsSystem else {
            self = .none
            return
        }
        let version = SystemRootsVersion()
        let number = Self.known.withLock { known in
            if let known, known.version == version { return known.number }
            // With a random one it has nothing in common with anybody.
            let number = SystemRootsDigest.ofSystem.number ?? .random(in: 1 ... .max)
            known = (version, number)
            return number
        }
        self.init(
            roots: number,
            coversClearText: configuration.parents.contains { $0.scheme == .https })
    }
}

extension ConfigurationSnapshot {
    /// Whether any server is verified by the system's roots.
    fileprivate var trustsSystem: Bool {
        tls.roots.contains(.system) || hosts.entries.contains { $0.tls.roots.contains(.system) }
    }
}
