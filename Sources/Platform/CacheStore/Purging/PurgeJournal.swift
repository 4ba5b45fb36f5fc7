import CLinux
import Files

/// The bans that are in force for what is on disk: a file, `cache.sqlite.purges`, so that nothing
/// that was purged is found again when the process has been killed before all of it was removed. It
/// is written and synced before a purge is acknowledged.
///
///     header   "PFPRG" and the version · the last serial before the records     (16 bytes)
///     records  bytes of the content (32 bits) · what it is (8) and a checksum of both (24) ·
///              checksum (64) · the content
///
/// A record that is cut off at the end belongs to a purge that was not acknowledged. A record that
/// is damaged in another way may have been any: then all that is stored counts as purged.
///
/// Its users serialize their access.
final class PurgeJournal: @unchecked Sendable {
    /// What was found.
    struct Contents: Equatable {
        var bans: [Ban] = []
        /// The largest serial ever used, as far as that is known.
        var lastSerial: UInt64 = 0
        /// Whether something cannot be read.
        var isDamaged = false
    }

    private enum Record: UInt32 {
        case ban = 1
        case retired = 2
    }

    /// "PFPRG" and the version.
    private static let kind: UInt64 = 0x5046_5052_4700_0001
    private static let headerBytes = 16
    private static let recordHeaderBytes = 16
    /// It is written anew when it has this many bytes.
    static let limit = 1 << 20

    private let path: String
    private let descriptor: Int32
    private(set) var bytes: Int
    /// The serial up to which all are known to have been carried out.
    private var retired: UInt64 = 0
    /// Bytes that it had when it was begun.
    private let begun: Int

    private init(path: String, descriptor: Int32, bytes: Int) {
        self.path = path
        self.descriptor = descriptor
        self.bytes = bytes
        begun = bytes
    }

    /// Whether most of it can be left out.
    var isLong: Bool { bytes > max(Self.limit, 2 * begun) }

    deinit { close(descriptor) }

    /// Reads a file; an empty one if it is not there.
    static func contents(_ path: String) -> Contents {
        let descriptor = uninterrupted {
            open_with_mode(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0)
        }
        guard descriptor >= 0 else { return Contents(isDamaged: -descriptor != ENOENT) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_size <= 64 << 20 else {
            return Contents(isDamaged: true)
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = uninterrupted { pread(descriptor, &bytes, bytes.count, 0) }
        guard count == bytes.count else { return Contents(isDamaged: true) }
        return bytes.withUnsafeBytes { parse($0) }
    }

    /// Writes a new file with these bans, and opens it.
    static func create(
        _ path: String, _ bans: [Ban], lastSerial: UInt64
    ) throws(FileError) -> PurgeJournal {
        var bytes: [UInt8] = []
        withUnsafeBytes(of: kind.littleEndian) { bytes += $0 }
        withUnsafeBytes(of: lastSerial.littleEndian) { bytes += $0 }
        for ban in bans { append(.ban, content(of: ban), to: &bytes) }
        try DurableFile.replace(path, by: bytes, mode: 0o600)
        let descriptor = uninterrupted {
            open_with_mode(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0)
        }
        guard descriptor >= 0 else { throw FileError(.open, path, -descriptor) }
        return PurgeJournal(path: path, descriptor: descriptor, bytes: bytes.count)
    }

    /// Appends bans, and waits until they are on the device.
    func append(_ bans: [Ban]) throws(FileError) {
        guard isInPlace else { throw FileError(.write, path, ENOENT) }
        var records: [UInt8] = []
        for ban in bans { Self.append(.ban, Self.content(of: ban), to: &records) }
        try write(records)
        let code = uninterrupted { fdatasync(descriptor) }
        guard code >= 0 else { throw FileError(.sync, path, -code) }
    }

    /// Notes that all bans up to a serial have been carried out. If that is lost, they are carried
    /// out again.
    func retire(through serial: UInt64) {
        guard serial > retired else { return }
        retired = serial
        var (content, record) = ([UInt8](), [UInt8]())
        withUnsafeBytes(of: serial.littleEndian) { content += $0 }
        Self.append(.retired, content, to: &record)
        try? write(record)
    }

    /// Whether the file is still the one that was opened: another one would be read at the next
    /// start.
    private var isInPlace: Bool {
        var ours = stat()
        var there = stat()
        return fstat(descriptor, &ours) == 0 && stat(path, &there) == 0
            && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino
            && there.st_size >= bytes
    }

    private func write(_ records: [UInt8]) throws(FileError) {
        let count = uninterrupted { pwrite(descriptor, records, records.count, off_t(bytes)) }
        guard count == records.count else {
            // What there is of them must not precede others.
            _ = uninterrupted { ftruncate(descriptor, off_t(bytes)) }
            throw FileError(.write, path, count < 0 ? Int32(-count) : ENOSPC)
        }
        bytes += records.count
    }

    // MARK: Records

    private static func append(_ kind: Record, _ content: [UInt8], to bytes: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(content.count).littleEndian) { bytes += $0 }
        withUnsafeBytes(of: word(kind.rawValue, content.count).littleEndian) { bytes += $0 }
        withUnsafeBytes(of: sum(kind.rawValue, content).littleEndian) { bytes += $0 }
        bytes += content
    }

    /// What a record is, with a checksum of its length: a wrong length would look like a record
    /// that is cut off.
    private static func word(_ kind: UInt32, _ count: Int) -> UInt32 {
        let sum = (UInt64(count) << 8 | UInt64(kind)) &* 0x9E37_79B9_7F4A_7C15
        return UInt32(truncatingIfNeeded: sum >> 40) << 8 | kind
    }

    private static func sum(_ kind: UInt32, _ content: [UInt8]) -> UInt64 {
        content.withUnsafeBytes { sum(kind, $0) }
    }

    private static func sum(_ kind: UInt32, _ content: UnsafeRawBufferPointer) -> UInt64 {
        XXHash64.hash(content, seed: self.kind ^ UInt64(kind) << 32 ^ UInt64(content.count))
    }

    private static func parse(_ bytes: UnsafeRawBufferPointer) -> Contents {
        func number(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        // Nobody purges as often as that: the number is damaged.
        guard bytes.count >= headerBytes, number(0) == kind, number(8) < 1 << 62 else {
            return Contents(isDamaged: true)
        }
        var contents = Contents(lastSerial: number(8))
        var retired: UInt64 = 0
        var place = headerBytes
        while bytes.count - place >= recordHeaderBytes {
            let lengths = number(place)
            let (count, mark) = (Int(lengths & 0xFFFF_FFFF), UInt32(lengths >> 32))
            let kind = mark & 0xFF
            // Space that was reserved for a record whose content did not reach the device.
            if lengths == 0, number(place + 8) == 0 { break }
            let start = place + recordHeaderBytes
            guard mark == word(kind, count), let record = Record(rawValue: kind) else {
                contents.isDamaged = true
                break
            }
            guard bytes.count - start >= count else { break }
            let content = UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])
            guard sum(kind, content) == number(place + 8) else {
                contents.isDamaged = true
                break
            }
            switch record {
            case .ban:
                guard let ban = ban(content) else {
                    contents.isDamaged = true
                    break
                }
                contents.bans.append(ban)
                contents.lastSerial = max(contents.lastSerial, ban.mark.serial)
            case .retired where count == 8: retired = max(retired, number(start))
            case .retired: contents.isDamaged = true
            }
            place = start + count
        }
        contents.bans.removeAll { $0.mark.serial <= retired }
        contents.lastSerial = max(contents.lastSerial, retired)
        return contents
    }

    // MARK: The content of a ban's record

    /// Serial, row, time (64 bits each), soft, kind, two lengths and a port (16 bits each), and the
    /// bytes.
    static func content(of ban: Ban) -> [UInt8] {
        var bytes: [UInt8] = []
        withUnsafeBytes(of: ban.mark.serial.littleEndian) { bytes += $0 }
        withUnsafeBytes(of: ban.mark.through.littleEndian) { bytes += $0 }
        withUnsafeBytes(of: ban.mark.time.littleEndian) { bytes += $0 }
        bytes.append(ban.isSoft ? 1 : 0)
        var (kind, first, second, port) = (UInt8(0), [UInt8](), [UInt8](), UInt16(0))
        switch ban.pattern {
        case .everything: break
        case .host(let host):
            (kind, first, port) = (1 + host.reach.rawValue, host.name, host.port ?? 0)
        case .tag(let tag, let origin):
            (kind, first, second) = (origin == nil ? 4 : 5, tag, origin ?? [])
        case .prefix(let prefix): (kind, first) = (6, prefix)
        case .key(let key): (kind, first) = (7, key)
        }
        bytes.append(kind)
        for length in [UInt16(first.count), UInt16(second.count), port] {
            withUnsafeBytes(of: length.littleEndian) { bytes += $0 }
        }
        return bytes + first + second
    }

    private static let fixedBytes = 32

    /// `nil` if it is none.
    static func ban(_ content: UnsafeRawBufferPointer) -> Ban? {
        guard content.count >= fixedBytes else { return nil }
        func number(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: content.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        func short(_ offset: Int) -> Int {
            Int(
                UInt16(
                    littleEndian: content.loadUnaligned(
                        fromByteOffset: offset, as: UInt16.self)))
        }
        let (firstCount, secondCount, port) = (short(26), short(28), short(30))
        guard content[24] <= 1, content.count == fixedBytes + firstCount + secondCount else {
            return nil
        }
        let first = Array(content[fixedBytes..<fixedBytes + firstCount])
        let second = Array(content[(fixedBytes + firstCount)...])
        let pattern: BanPattern
        switch content[25] {
        case 0: pattern = .everything
        case let kind where (1...3).contains(kind):
            guard let reach = PurgeHost.Reach(rawValue: kind - 1) else { return nil }
            pattern = .host(PurgeHost(reach, first, port: port == 0 ? nil : UInt16(port)))
        case 4: pattern = .tag(first, origin: nil)
        case 5: pattern = .tag(first, origin: second)
        case 6: pattern = .prefix(first)
        case 7: pattern = .key(first)
        default: return nil
        }
        let mark = BanMark(
            serial: number(0), through: Int64(bitPattern: number(8)),
            time: Int64(bitPattern: number(16)))
        return Ban(pattern: pattern, isSoft: content[24] == 1, mark: mark)
    }
}
