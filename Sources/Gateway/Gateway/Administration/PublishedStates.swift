import Activity
import PinfoldMetrics

extension StateMetric {
    /// The activity indicator's state and transitions.
    package init(_ indicator: ActivityTracker) {
        self.init(
            states: ActivityState.allCases.map { state in
                Entry(
                    label: String(describing: state.label),
                    transitions: indicator.transitions[Int(state.rawValue)])
            }, current: Int(indicator.state.rawValue))
    }
}
