import Activity
import PinfoldMetrics

extension StateFigure {
    /// The activity indicator's state and transitions.
    package init(_ indicator: ActivityIndicator) {
        self.init(
            states: ActivityState.allCases.map { state in
                Entry(
                    label: String(describing: state.label),
                    transitions: indicator.transitions[Int(state.rawValue)])
            }, current: Int(indicator.state.rawValue))
    }
}

extension LabelledState {
    /// A host's reachability and its transitions.
    package init(_ host: HostReachability) {
        let states = ReachabilityState.allCases.map { state in
            StateFigure.Entry(
                label: String(describing: state.label),
                transitions: host.transitions(to: state))
        }
        self.init(
            label: host.host,
            state: StateFigure(states: states, current: Int(host.state.rawValue)))
    }
}
