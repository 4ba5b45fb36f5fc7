// Activity
