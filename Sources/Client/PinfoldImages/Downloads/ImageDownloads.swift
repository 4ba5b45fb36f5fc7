import HTTPTypes
import PinfoldClient

/// The state of an ``ImageDownloader``: which callers wait for which downloads, and which of those
/// are active. It is a value without side effects.
struct ImageDownloads {
    typealias Delivery = @Sendable (Result<ImageDownload, ClientError>) -> Void

    /// The properties in which two requests must be equal to share a download.
    private struct Key: Hashable {
        let request: HTTPRequest
        let policy: RequestProperties.CachePolicy
    }

    private struct Download {
        let options: RequestOptions
        let origin: RequestOrigin
        var priority: RequestPriority
        /// The download's number in the queue.
        var ticket: UInt64
        var hasBegun: Bool
        var task: Task<Void, Never>?
        var callers: [(number: UInt64, deliver: Delivery)]
    }

    private var queue: RequestQueue
    private var downloads: [Key: Download] = [:]
    /// The tickets of the downloads that have callers.
    private var tickets: [UInt64: Key] = [:]
    /// The downloads that have begun and not ended, with or without callers.
    private var active: [UInt64: RequestOrigin] = [:]
    private var receipts: [UInt64: Key] = [:]
    private var last: UInt64 = 0

    init(maximumActive: Int, order: QueueOrder) {
        queue = RequestQueue(perOrigin: maximumActive, total: maximumActive, order: order)
    }

    var activeCount: Int { active.count }
    var waitingCount: Int { downloads.values.count { !$0.hasBegun } }

    private mutating func nextNumber() -> UInt64 {
        last += 1
        return last
    }

    /// Adds a caller.
    ///
    /// - Returns: The caller's number, and the ticket of the download if it is to begin now.
    mutating func join(
        _ request: HTTPRequest, _ options: RequestOptions, _ origin: RequestOrigin,
        _ deliver: @escaping Delivery
    ) -> (number: UInt64, begins: UInt64?) {
        let number = nextNumber()
        let key = Key(request: request, policy: options.cachePolicy)
        receipts[number] = key
        guard downloads[key] == nil else {
            downloads[key]?.callers.append((number, deliver))
            lift(key, to: options.priority)
            return (number, nil)
        }
        let ticket = nextNumber()
        let begins = queue.add(ticket, to: origin, priority: options.priority)
        tickets[ticket] = key
        downloads[key] = Download(
            options: options, origin: origin, priority: options.priority, ticket: ticket,
            hasBegun: false, task: nil, callers: [(number, deliver)])
        return (number, begins ? ticket : nil)
    }

    /// Moves a waiting download to a higher priority.
    private mutating func lift(_ key: Key, to priority: RequestPriority) {
        guard var download = downloads[key], !download.hasBegun,
            priority.urgency < download.priority.urgency
        else { return }
        let ticket = nextNumber()
        // The limit has been reached, or the download would not be waiting: so it does not begin.
        guard !queue.add(ticket, to: download.origin, priority: priority) else { return }
        _ = queue.remove(download.ticket, of: download.origin)
        tickets[download.ticket] = nil
        tickets[ticket] = key
        download.ticket = ticket
        download.priority = priority
        downloads[key] = download
    }

    /// Returns the request of a download that may begin.
    func request(of ticket: UInt64) -> (HTTPRequest, RequestOptions)? {
        guard let key = tickets[ticket], let download = downloads[key] else { return nil }
        var options = download.options
        options.priority = download.priority
        return (key.request, options)
    }

    mutating func began(_ ticket: UInt64, _ task: Task<Void, Never>) {
        guard let key = tickets[ticket] else { return }
        active[ticket] = downloads[key]?.origin
        downloads[key]?.hasBegun = true
        downloads[key]?.task = task
    }

    /// Removes a caller.
    ///
    /// - Returns: How to deliver the result to the caller, and the task to cancel if it was the
    ///   last caller; or `nil` if the download has ended.
    mutating func leave(
        _ number: UInt64
    ) -> (request: HTTPRequest, deliver: Delivery, task: Task<Void, Never>?)? {
        guard let key = receipts.removeValue(forKey: number), let download = downloads[key],
            let index = download.callers.firstIndex(where: { $0.number == number })
        else { return nil }
        let deliver = download.callers[index].deliver
        downloads[key]?.callers.remove(at: index)
        guard download.callers.count == 1 else { return (key.request, deliver, nil) }
        downloads[key] = nil
        tickets[download.ticket] = nil
        // A download that has begun counts as active until it has ended.
        if !download.hasBegun { _ = queue.remove(download.ticket, of: download.origin) }
        return (key.request, deliver, download.task)
    }

    /// Ends a download.
    ///
    /// - Returns: The callers that wait for it, and the tickets of the downloads that are to begin
    ///   now.
    mutating func end(_ ticket: UInt64) -> (callers: [Delivery], next: [UInt64]) {
        var callers: [Delivery] = []
        if let key = tickets.removeValue(forKey: ticket),
            let download = downloads.removeValue(forKey: key)
        {
            for caller in download.callers { receipts[caller.number] = nil }
            callers = download.callers.map(\.deliver)
        }
        guard let origin = active.removeValue(forKey: ticket) else { return (callers, []) }
        return (callers, queue.remove(ticket, of: origin))
    }
}
