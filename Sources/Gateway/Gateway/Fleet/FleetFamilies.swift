import PinfoldMetrics

extension ServiceMetrics {
    private typealias Sample = ServiceFamily.Sample

    /// The fleet, as it was found last. Without one, or while the engine does not say, there are no
    /// samples.
    mutating func addFleet(_ view: FleetView?) {
        func samples(_ value: KeyPath<FleetView, Int>) -> [Sample] {
            guard let view, view.isCurrent else { return [] }
            return [Sample(.none, UInt64(view[keyPath: value]))]
        }
        add(
            .gauge, "pinfold_fleet_members", "Gateways that share the cache, this one included.",
            samples(\.count))
        add(
            .gauge, "pinfold_fleet_members_behind",
            "Gateways that have yet to carry out what others have purged.", samples(\.behind))
        add(
            .gauge, "pinfold_fleet_policies",
            "How many different policies gateways have in force: 1 if all agree.",
            samples(\.policyCount))
    }
}

extension FleetView {
    fileprivate var policyCount: Int { policies.count }
}
