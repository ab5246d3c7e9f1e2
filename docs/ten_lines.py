"""What the first page shows: its code, what that prints, and the picture it draws."""

from sklearn.model_selection import train_test_split

from equipoise import LabelCVaR, RobustLogisticRegression
from equipoise.datasets import load_thyroid
from equipoise.display import ClassRisksDisplay

X, X_new, y, y_new = train_test_split(*load_thyroid(return_X_y=True), random_state=0)
plain = RobustLogisticRegression("standard", C=100).fit(X, y)
robust = RobustLogisticRegression(LabelCVaR(0.1), C=100).fit(X, y)

shown = ClassRisksDisplay.from_estimator({"plain": plain, "robust": robust}, X_new, y_new)
print(shown.to_frame().round(3).to_string(index=False))
