import HTTPCore

// Streams to servers that are reached by several ways, or through a parent only.
extension UpstreamPool {
    /// Tries the ways to an origin for a consumer.
    func search(
        _ origin: Origin, by ways: WayList, for consumer: any UpstreamConsumer, fresh: Bool
    ) {
        guard ways !== WayList.offline else {
            return consumer.upstreamFailed(StreamError(.gateway(.offline)))
        }
        let search = WaySearch(self, origin, by: ways, for: consumer, fresh: fresh)
        searches[ObjectIdentifier(consumer)] = search
        if search.proceed() { return }
        ended(search, of: consumer)
        consumer.upstreamFailed(StreamError(.noWay))
    }

    /// A search has ended, and the consumer has its result.
    func ended(_ search: WaySearch, of consumer: any UpstreamConsumer) {
        searches[ObjectIdentifier(consumer)] = nil
    }

    /// A server is no longer one of its route's: those for whom ways to it are tried, or who wait
    /// for a parent to forward their request to it, find another.
    func endSearches(for origin: Origin) {
        for search in Array(searches.values) where search.leads(to: origin) {
            // The one before may have had consequences.
            guard searches.values.contains(where: { $0 === search }) else { continue }
            search.end()
        }
    }

    /// The consumer for which ways are tried no longer waits; false if there is none.
    func abandonSearch(of consumer: any UpstreamConsumer) -> Bool {
        guard !searches.isEmpty,
            let search = searches.removeValue(forKey: ObjectIdentifier(consumer))
        else { return false }
        search.abandon()
        return true
    }
}
