import HTTPCore
import PinfoldEngine

/// An exchange that has ended, for recordings: with more of its heads than the ring holds, and with
/// bodies for those that want them.
struct RecordedFlow: Sendable {
    let flow: HeldFlow
    var request = KeptContent()
    var response = KeptContent()
    /// Whether bodies were kept of it.
    private(set) var hasContents = false
    /// How many of the bodies have codings, and may be far larger when these are undone.
    private(set) var codedBodies = 0
    /// Keeps the room for the bodies.
    private var lease: (any ContentLease)?

    /// - Parameter contents: `nil` if no bodies were kept of it.
    init(_ flow: HeldFlow, _ contents: KeptContents? = nil) {
        self.flow = flow
        guard let contents else { return }
        (request, response) = (contents.request, contents.response)
        lease = contents.lease
        hasContents = true
        if !request.bytes.isEmpty, Self.isCoded(flow.head) { codedBodies += 1 }
        if !response.bytes.isEmpty, Self.isCoded(flow.responseHead) { codedBodies += 1 }
    }

    /// Whether a head has a line of Content-Encoding, whatever that says.
    private static func isCoded(_ head: ArraySlice<UInt8>) -> Bool {
        let name = Array("content-encoding:".utf8)
        return head.split(separator: UInt8(ascii: "\n")).contains { line in
            line.count >= name.count
                && zip(line, name).allSatisfy { ASCII.lowercased($0) == $1 }
        }
    }

    /// About how many bytes it takes while it waits for a reader.
    var bytes: Int {
        MemoryLayout<RecordedFlow>.stride + flow.textCapacity + request.bytes.count
            + response.bytes.count
    }
}
