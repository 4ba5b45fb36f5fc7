import CachePolicy
import CacheStore
import TestSupport

extension CacheStoreOptions {
    /// Small and quick, for tests.
    package static func small(_ folder: TemporaryFolder? = nil) -> CacheStoreOptions {
        var options = CacheStoreOptions()
        options.memoryBytes = 4 << 20
        options.memoryShards = 1
        options.diskBytes = folder == nil ? 0 : 64 << 20
        options.folder = folder?.path ?? ""
        options.batchMilliseconds = 1
        return options
    }
}

/// Bytes that depend on their position: a moved or exchanged piece is noticed.
package func body(_ count: Int, seed: Int = 0) -> [UInt8] {
    var generator = SeededRandom(seed: UInt64(truncatingIfNeeded: seed &* 7919 &+ count))
    var bytes = [UInt8](repeating: 0, count: count)
    bytes.withUnsafeMutableBytes { raw in
        var offset = 0
        while offset < count {
            let word = generator.next()
            let part = min(8, count - offset)
            withUnsafeBytes(of: word) { source in
                UnsafeMutableRawBufferPointer(rebasing: raw[offset..<offset + part])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<part]))
            }
            offset += part
        }
    }
    return bytes
}

package func head(_ tag: String = "1", extra: String = "") -> [UInt8] {
    Array(
        ("HTTP/1.1 200 OK\r\nDate: Fri, 21 Nov 2025 10:00:00 GMT\r\nETag: \"\(tag)\"\r\n"
            + "Cache-Control: max-age=3600\r\n\(extra)").utf8)
}

package let testTimes = StoredTimes(
    requestTime: 1_763_719_200, responseTime: 1_763_719_201, initialAge: 3)

package func metadata(_ head: [UInt8]) -> StoredMetadata {
    guard
        let metadata = StoredMetadata(
            storedHead: head.span, times: testTimes, hasQuery: false, options: PolicyOptions())
    else { fatalError("not a stored head") }
    return metadata
}

/// A Vary key that nominates `accept-language` with this value.
package func vary(_ value: String?) -> VaryKey {
    guard let value else { return .none }
    let name = "accept-language"
    let bytes =
        [1, UInt8(name.utf8.count)] + Array(name.utf8) + [1, 0, UInt8(value.utf8.count)]
        + Array(value.utf8)
    guard let key = VaryKey(bytes: bytes) else { fatalError("not a Vary key") }
    return key
}
