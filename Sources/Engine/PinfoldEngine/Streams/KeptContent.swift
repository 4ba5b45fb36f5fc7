import CacheStore
import EventLoop
import HTTPCore

/// Room for content that is kept, which others share. It is given back with the last reference.
package protocol ContentLease: AnyObject, Sendable {
    /// Takes room for more bytes. Returns `false`, and takes none, if there is not enough.
    func take(_ bytes: Int) -> Bool
}

/// The beginning of a message's content, as the client sent or got it.
package struct KeptContent: Sendable {
    package private(set) var bytes: [UInt8] = []
    /// Whether there was more than is kept.
    package private(set) var isCut = false

    package init() {}

    /// The room for more of it. From the first byte that is left out on nothing is kept: what
    /// follows a gap would be other content.
    fileprivate mutating func room(
        for count: Int, atMost limit: Int, _ lease: any ContentLease
    ) -> Int {
        guard !isCut, count > 0 else { return 0 }
        let room = min(count, limit - bytes.count)
        guard room > 0, lease.take(room) else {
            isCut = true
            return 0
        }
        isCut = room < count
        return room
    }

    fileprivate mutating func add(_ content: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: content)
    }

    fileprivate mutating func add(_ file: MemoryFile, from offset: Int, count: Int) {
        var isRead = false
        bytes += [UInt8](unsafeUninitializedCapacity: count) { memory, filled in
            let target = UnsafeMutableRawBufferPointer(memory)
            isRead = file.read(
                into: UnsafeMutableRawBufferPointer(rebasing: target[..<count]), at: offset)
            filled = isRead ? count : 0
        }
        if !isRead { isCut = true }
    }
}

/// What is kept of the content of an exchange's messages, for a recording that wants it: of each
/// message as many bytes as it wants, as long as there is room.
package final class KeptContents {
    /// The most bytes of each message.
    package let limit: Int
    package let lease: any ContentLease
    package private(set) var request = KeptContent()
    package private(set) var response = KeptContent()

    package init(limit: Int, lease: any ContentLease) {
        self.limit = limit
        self.lease = lease
    }

    /// Content that the client sent.
    func received(_ content: UnsafeRawBufferPointer) {
        let room = request.room(for: content.count, atMost: limit, lease)
        if room > 0 { request.add(UnsafeRawBufferPointer(rebasing: content[..<room])) }
    }

    /// Content that is sent to the client.
    func sent(_ content: UnsafeRawBufferPointer) {
        let room = response.room(for: content.count, atMost: limit, lease)
        if room > 0 { response.add(UnsafeRawBufferPointer(rebasing: content[..<room])) }
    }

    /// The same from a file.
    func sent(_ file: MemoryFile, offset: Int, count: Int) {
        let room = response.room(for: count, atMost: limit, lease)
        if room > 0 { response.add(file, from: offset, count: room) }
    }

    /// Of what was to be sent nothing was, and other content follows.
    func withdrawn() { response = KeptContent() }
}
