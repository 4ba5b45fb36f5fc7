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
    /// Keeps the room for the bodies.
    private var lease: (any ContentLease)?

    /// - Parameter contents: `nil` if no bodies were kept of it.
    init(_ flow: HeldFlow, _ contents: KeptContents? = nil) {
        self.flow = flow
        guard let contents else { return }
        (request, response) = (contents.request, contents.response)
        lease = contents.lease
        hasContents = true
    }

    /// About how many bytes it takes while it waits for a reader.
    var bytes: Int {
        MemoryLayout<RecordedFlow>.stride + flow.textCapacity + request.bytes.count
            + response.bytes.count
    }
}
